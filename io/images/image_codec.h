// Compressed images: what their headers say, and their pixels.
// Invariant: no memory is allocated for an image before its header was found to be reasonable.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace concertina {

/// C = 1 (grey) or 3 (red, green, blue).
struct ImageShape {
  std::int64_t channels = 0, height = 0, width = 0;  // as the pixels are stored
  int orientation = 1;                               // Exif's: how it is to be seen; 1: as it is
  bool operator==(const ImageShape&) const = default;
};

/// No larger image is read, whatever its header says: 2^26 pixels.
inline constexpr std::uint64_t kMostPixels = std::uint64_t{1} << 26;

/// A format of images. Both functions throw input errors that name `where`: no such image, more
/// than kMostPixels, kinds that are not 8 bits of grey or colour, and, for `decode`, any damage.
/// Both are null where the library is missing.
struct ImageCodec {
  std::string_view library;  // that reads it
  std::string_view package;  // of Debian, to build it with
  ImageShape (*shape)(std::span<const std::byte> file, const std::string& where) = nullptr;
  /// Writes pixels [H, W, C] as shape() says; `pixels` has that many bytes.
  void (*decode)(std::span<const std::byte> file, const std::string& where,
                 std::span<std::uint8_t> pixels) = nullptr;

  bool available() const { return decode != nullptr; }
};

const ImageCodec& png_codec();
const ImageCodec& jpeg_codec();

/// Throws an input error for an image of no or of too many pixels.
void check_pixels(std::uint64_t width, std::uint64_t height, const std::string& where);

/// The orientation (1 to 8) that a block of Exif says, from its TIFF header on; 1 where it says
/// none.
int exif_orientation(std::span<const std::byte> block);

/// The codec of files that end in `.extension` (lower case), or null.
const ImageCodec* codec_of(std::string_view extension);

}  // namespace concertina
