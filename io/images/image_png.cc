// PNG decoding with libpng. It reports errors by longjmp: functions that call setjmp() must not
// have objects with destructors; these are in the PngReader of their caller.
#include <png.h>

#include <cstring>
#include <vector>

#include "core/error.h"
#include "io/images/image_codec.h"

namespace concertina {
namespace {

struct PngReader {
  explicit PngReader(std::span<const std::byte> file) : left(file) {
    png = ::png_create_read_struct(PNG_LIBPNG_VER_STRING, this, &fail, &warn);
    if (png != nullptr) info = ::png_create_info_struct(png);
    if (info == nullptr) {
      ::png_destroy_read_struct(&png, nullptr, nullptr);
      throw_failure("libpng could not be initialized", "a PNG image", "free some memory");
    }
    ::png_set_read_fn(png, this, &take);
    ::png_set_crc_action(png, PNG_CRC_ERROR_QUIT, PNG_CRC_ERROR_QUIT);
  }
  ~PngReader() { ::png_destroy_read_struct(&png, &info, nullptr); }
  PngReader(const PngReader&) = delete;
  PngReader& operator=(const PngReader&) = delete;

  static void fail(png_structp png, png_const_charp message) {
    auto* reader = static_cast<PngReader*>(::png_get_error_ptr(png));
    std::strncpy(reader->message, message, sizeof reader->message - 1);
    ::png_longjmp(png, 1);
  }
  static void warn(png_structp /*png*/, png_const_charp /*message*/) {}
  static void take(png_structp png, png_bytep out, std::size_t bytes) {
    auto* reader = static_cast<PngReader*>(::png_get_io_ptr(png));
    if (bytes > reader->left.size()) ::png_error(png, "the file is truncated");
    std::memcpy(out, reader->left.data(), bytes);
    reader->left = reader->left.subspan(bytes);
  }

  std::span<const std::byte> left;
  png_structp png = nullptr;
  png_infop info = nullptr;
  char message[128] = {};
};

/// Returns false after an error, with the message in `reader`.
bool read_png_header(PngReader& reader) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  ::png_read_info(reader.png, reader.info);
  return true;
}

bool read_png_rows(PngReader& reader, png_bytepp rows) {
  if (setjmp(png_jmpbuf(reader.png)) != 0) return false;
  ::png_set_expand(reader.png);  // palettes to colors, 1, 2 and 4 bits to 8
  ::png_set_interlace_handling(reader.png);
  ::png_read_update_info(reader.png, reader.info);
  ::png_read_image(reader.png, rows);
  ::png_read_end(reader.png, nullptr);
  return true;
}

[[noreturn]] void refuse_png(const PngReader& reader, const std::string& where) {
  throw_input(fmt::format("cannot decode the PNG image: {}", reader.message), where,
              "use an undamaged image");
}

ImageShape png_shape_of(PngReader& reader, const std::string& where) {
  if (!read_png_header(reader)) refuse_png(reader, where);
  const png_uint_32 width = ::png_get_image_width(reader.png, reader.info);
  const png_uint_32 height = ::png_get_image_height(reader.png, reader.info);
  check_pixels(width, height, where);
  const int kind = ::png_get_color_type(reader.png, reader.info);
  const bool clear = (kind & PNG_COLOR_MASK_ALPHA) != 0 ||
                     ::png_get_valid(reader.png, reader.info, PNG_INFO_tRNS) != 0;
  if (clear || ::png_get_bit_depth(reader.png, reader.info) > 8)
    throw_input(clear ? "the PNG image has transparency" : "the PNG image has 16 bits per channel",
                where, "use 8-bit grayscale or RGB without transparency");
  png_bytep exif = nullptr;
  png_uint_32 bytes = 0;
  ::png_get_eXIf_1(reader.png, reader.info, &bytes, &exif);
  return {(kind & PNG_COLOR_MASK_COLOR) != 0 ? 3 : 1, height, width,
          exif_orientation(std::as_bytes(std::span(exif, bytes)))};
}

ImageShape png_shape(std::span<const std::byte> file, const std::string& where) {
  PngReader reader(file);
  return png_shape_of(reader, where);
}

void decode_png(std::span<const std::byte> file, const std::string& where,
                std::span<std::uint8_t> pixels) {
  PngReader reader(file);
  const ImageShape shape = png_shape_of(reader, where);
  const auto row = static_cast<std::size_t>(shape.width * shape.channels);
  CONCERTINA_CHECK(pixels.size() == row * static_cast<std::size_t>(shape.height),
                   "buffer of {} bytes for an image of {} x {}", pixels.size(), shape.height, row);
  std::vector<png_bytep> rows;
  for (std::size_t at = 0; at < pixels.size(); at += row) rows.push_back(pixels.data() + at);
  if (!read_png_rows(reader, rows.data())) refuse_png(reader, where);
}

}  // namespace

const ImageCodec& png_codec() {
  static constexpr ImageCodec kCodec{"libpng", "libpng-dev", png_shape, decode_png};
  return kCodec;
}

}  // namespace concertina
