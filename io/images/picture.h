// Images with 8 bits per channel, and how they are scaled and cropped to a common size. Invariant:
// the result is byte-identical to that of Pillow and torchvision with the same options.
//
// Dimensions: C channels, H rows, W columns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace concertina {

/// C = 1 (grayscale) or 3 (RGB).
struct Picture {
  std::int64_t channels = 0, height = 0, width = 0;
  std::vector<std::uint8_t> pixels{};  // [C, H, W]

  std::int64_t plane() const { return height * width; }
};

/// Returns an image of zeros.
Picture black_picture(std::int64_t channels, std::int64_t height, std::int64_t width);

/// A part of an image; may extend beyond it.
struct PictureBox {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
};

/// Returns the pixels of `box`; those outside the image are 0.
Picture cut(const Picture& picture, const PictureBox& box);

/// Interpolation filters for scaling (data.interpolation).
inline constexpr std::string_view kInterpolations[] = {"bilinear", "bicubic"};

/// Scales an image to a positive size, with the filter widened for downscaling (antialiasing), in
/// the fixed-point arithmetic of Pillow's Image.resize() (libImaging/Resample.c).
Picture resized(const Picture& picture, std::int64_t height, std::int64_t width,
                std::string_view interpolation);

/// How images are brought to a common size: center crop after scaling, or distortion.
inline constexpr std::string_view kFits[] = {"cut", "stretch"};

struct PictureFit {
  std::int64_t size = 0;          // side of the resulting square; 0: unchanged
  std::int64_t shorter_side = 0;  // before the center crop; 0: `size`
  std::string fit = "cut";        // one of kFits
  std::string interpolation = "bilinear";
};

/// Throws Error{bad_input} with `where` if an image of this size is too elongated to be scaled.
void check_fit(const PictureFit& fit, std::int64_t height, std::int64_t width,
               const std::string& where);

/// Returns the square: torchvision's Resize(shorter_side) and CenterCrop(size) with its rounding,
/// or Resize((size, size)).
Picture fitted(Picture picture, const PictureFit& fit);

}  // namespace concertina
