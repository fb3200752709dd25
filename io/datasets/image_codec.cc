#include "io/datasets/image_codec.h"

#include <fmt/format.h>

#include "core/error.h"

namespace concertina {

void check_pixels(std::uint64_t width, std::uint64_t height, const std::string& where) {
  if (width == 0 || height == 0 || height > kMostPixels / width)
    throw_input(fmt::format("the header says {} x {} pixels", width, height), where,
                fmt::format("an image of at least 1 and at most {} pixels", kMostPixels));
}

const ImageCodec* codec_of(std::string_view extension) {
  if (extension == "png") return &png_codec();
  if (extension == "jpg" || extension == "jpeg") return &jpeg_codec();
  return nullptr;
}

}  // namespace concertina
