// Pictures of 8 bits per channel, and how they are scaled and cut to one size.
// Invariant: the bytes are those that Pillow and torchvision make with the same options.
//
// Dimensions: C channels, H rows, W columns.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace concertina {

/// C = 1 (grey) or 3 (red, green, blue).
struct Picture {
  std::int64_t channels = 0, height = 0, width = 0;
  std::vector<std::uint8_t> pixels{};  // [C, H, W]

  std::int64_t plane() const { return height * width; }
};

/// A picture of value 0.
Picture black_picture(std::int64_t channels, std::int64_t height, std::int64_t width);

/// A part of a picture; it may reach beyond it.
struct PictureBox {
  std::int64_t top = 0, left = 0, height = 0, width = 0;
};

/// The pixels of `box`; those outside of the picture are 0.
Picture cut(const Picture& picture, const PictureBox& box);

/// How a pixel is made of those around it when a picture is scaled (data.interpolation).
inline constexpr std::string_view kInterpolations[] = {"bilinear", "bicubic"};

/// The picture in another size, both sides at least 1, with the filter widened where it shrinks
/// (antialiasing): Pillow's Image.resize(), in its fixed-point arithmetic (libImaging/Resample.c).
Picture resized(const Picture& picture, std::int64_t height, std::int64_t width,
                std::string_view interpolation);

/// How pictures of any size get one: the middle of the scaled picture, or all of it, distorted.
inline constexpr std::string_view kFits[] = {"cut", "stretch"};

struct PictureFit {
  std::int64_t size = 0;  // of a side of the square that is made; 0: pictures stay as they are
  std::int64_t shorter_side = 0;  // of the picture of which the middle is cut; 0: `size`
  std::string fit = "cut";        // of kFits
  std::string interpolation = "bilinear";
};

/// Throws an input error for `where` if a picture of this size is too long to be scaled so.
void check_fit(const PictureFit& fit, std::int64_t height, std::int64_t width,
               const std::string& where);

/// The square: torchvision's Resize(shorter_side) and CenterCrop(size), with its rounding, or
/// Resize((size, size)).
Picture fitted(Picture picture, const PictureFit& fit);

}  // namespace concertina
