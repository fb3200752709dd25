#include "io/images/image_codec.h"

#include <fmt/format.h>

#include "core/error.h"

namespace concertina {

int exif_orientation(std::span<const std::byte> block) {
  constexpr std::size_t kHeader = 8, kEntry = 12;
  constexpr std::uint32_t kOrientation = 0x112, kShort = 3;
  const bool is_little = !block.empty() && block[0] == std::byte{'I'};
  // Bytes beyond the end are read as zeros.
  const auto number = [&](std::size_t at, std::size_t bytes) {
    std::uint32_t value = 0;
    for (std::size_t i = 0; i < bytes && at + bytes <= block.size(); ++i)
      value |= std::to_integer<std::uint32_t>(block[at + i]) << 8 * (is_little ? i : bytes - 1 - i);
    return value;
  };
  if (block.size() < kHeader || number(2, 2) != 42) return 1;
  const std::size_t first = number(4, 4), entries = number(first, 2);
  for (std::size_t i = 0; i < entries && first + 2 + (i + 1) * kEntry <= block.size(); ++i) {
    const std::size_t entry = first + 2 + i * kEntry;
    if (number(entry, 2) != kOrientation || number(entry + 2, 2) != kShort) continue;
    const std::uint32_t value = number(entry + 8, 2);
    return value >= 1 && value <= 8 ? static_cast<int>(value) : 1;
  }
  return 1;
}

void check_pixels(std::uint64_t width, std::uint64_t height, const std::string& where) {
  if (width == 0 || height == 0 || height > kMostPixels / width)
    throw_input(fmt::format("invalid image size of {} x {} pixels", width, height), where,
                fmt::format("use an image of at least 1 and at most {} pixels", kMostPixels));
}

const ImageCodec* codec_of(std::string_view extension) {
  if (extension == "png") return &png_codec();
  if (extension == "jpg" || extension == "jpeg") return &jpeg_codec();
  return nullptr;
}

}  // namespace concertina
