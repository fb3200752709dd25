// Decoders for compressed images. Invariant: no memory is allocated for an image before its header
// has been found plausible.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace concertina {

/// C = 1 (grayscale) or 3 (RGB).
struct ImageShape {
  std::int64_t channels = 0, height = 0, width = 0;  // of the stored pixels
  int orientation = 1;                               // Exif orientation; 1: upright
  bool operator==(const ImageShape&) const = default;
};

/// Images with more pixels than this are rejected based on their header.
inline constexpr std::uint64_t kMostPixels = std::uint64_t{1} << 26;

/// An image format. Both functions throw Error{bad_input} with `where` for a different format, more
/// than kMostPixels, or pixels that are not 8-bit grayscale or RGB; `decode` also for damaged data.
/// Both are null if the library is missing.
struct ImageCodec {
  std::string_view library;  // name of the decoding library
  std::string_view package;  // its Debian package
  ImageShape (*shape)(std::span<const std::byte> file, const std::string& where) = nullptr;
  /// Writes pixels [H, W, C] of shape() to `pixels`, which has that many bytes.
  void (*decode)(std::span<const std::byte> file, const std::string& where,
                 std::span<std::uint8_t> pixels) = nullptr;

  bool available() const { return decode != nullptr; }
};

const ImageCodec& png_codec();
const ImageCodec& jpeg_codec();

/// Throws Error{bad_input} for an image with zero or too many pixels.
void check_pixels(std::uint64_t width, std::uint64_t height, const std::string& where);

/// Returns the orientation (1 to 8) in a block of Exif data, which starts at the TIFF header; 1 if
/// there is none.
int exif_orientation(std::span<const std::byte> block);

/// Returns the codec for files named *.`extension` (lower case), or null.
const ImageCodec* codec_of(std::string_view extension);

}  // namespace concertina
