// JPEG decoding with libjpeg-turbo. It reports errors by longjmp: functions that call setjmp() must
// not have objects with destructors; these are in the JpegReader of their caller.
#include <cstddef>
#include <cstdio>
// jpeglib.h needs the headers above.
#include <jpeglib.h>

#include <algorithm>
#include <csetjmp>

#include "core/error.h"
#include "io/images/image_codec.h"

namespace concertina {
namespace {

constexpr int kMostScans = 100;  // a progressive image has about ten

constexpr int kExifMarker = JPEG_APP0 + 1;

struct JpegReader {
  explicit JpegReader(std::span<const std::byte> source) : file(source) {
    jpeg.err = ::jpeg_std_error(&errors);
    errors.error_exit = &fail;
    errors.emit_message = &warn;
    jpeg.client_data = this;
    progress.progress_monitor = &count_scans;
  }
  ~JpegReader() { ::jpeg_destroy_decompress(&jpeg); }
  JpegReader(const JpegReader&) = delete;
  JpegReader& operator=(const JpegReader&) = delete;

  static void fail(j_common_ptr jpeg) {
    auto* reader = static_cast<JpegReader*>(jpeg->client_data);
    jpeg->err->format_message(jpeg, reader->message);
    std::longjmp(reader->jump, 1);
  }
  /// libjpeg only warns about damage and then invents pixels.
  static void warn(j_common_ptr jpeg, int level) {
    if (level < 0) fail(jpeg);
  }
  static void count_scans(j_common_ptr jpeg) {
    auto* reader = static_cast<JpegReader*>(jpeg->client_data);
    if (reader->jpeg.input_scan_number <= kMostScans) return;
    std::snprintf(reader->message, sizeof reader->message, "more than %d scans", kMostScans);
    std::longjmp(reader->jump, 1);
  }

  std::span<const std::byte> file;
  jpeg_decompress_struct jpeg{};
  jpeg_error_mgr errors{};
  jpeg_progress_mgr progress{};
  std::jmp_buf jump{};
  char message[JMSG_LENGTH_MAX] = {};
};

/// Returns false after an error, with the message in `reader`.
bool read_jpeg_header(JpegReader& reader) {
  if (setjmp(reader.jump) != 0) return false;
  // Both functions preserve `err` and `client_data`.
  ::jpeg_create_decompress(&reader.jpeg);
  reader.jpeg.progress = &reader.progress;
  ::jpeg_mem_src(&reader.jpeg, reinterpret_cast<const unsigned char*>(reader.file.data()),
                 reader.file.size());
  ::jpeg_save_markers(&reader.jpeg, kExifMarker, 0xffff);
  ::jpeg_read_header(&reader.jpeg, TRUE);
  return true;
}

bool read_jpeg_rows(JpegReader& reader, std::uint8_t* out) {
  if (setjmp(reader.jump) != 0) return false;
  jpeg_decompress_struct& jpeg = reader.jpeg;
  jpeg.out_color_space = jpeg.num_components == 1 ? JCS_GRAYSCALE : JCS_RGB;
  jpeg.dct_method = JDCT_ISLOW;  // identical results with all instruction sets
  ::jpeg_start_decompress(&jpeg);
  const std::size_t row =
      std::size_t{jpeg.output_width} * static_cast<std::size_t>(jpeg.output_components);
  while (jpeg.output_scanline < jpeg.output_height) {
    JSAMPROW at = out + jpeg.output_scanline * row;
    ::jpeg_read_scanlines(&jpeg, &at, 1);
  }
  ::jpeg_finish_decompress(&jpeg);
  return true;
}

int jpeg_orientation(const jpeg_decompress_struct& jpeg) {
  constexpr std::size_t kName = 6;  // "Exif", two zeros
  for (const jpeg_saved_marker_ptr* at = &jpeg.marker_list; *at != nullptr; at = &(*at)->next) {
    const std::span<const JOCTET> data((*at)->data, (*at)->data_length);
    if ((*at)->marker == kExifMarker && data.size() > kName &&
        std::equal(data.begin(), data.begin() + kName, "Exif\0"))
      return exif_orientation(std::as_bytes(data.subspan(kName)));
  }
  return 1;
}

[[noreturn]] void refuse_jpeg(const JpegReader& reader, const std::string& where) {
  throw_input(fmt::format("cannot decode the JPEG image: {}", reader.message), where,
              "use an undamaged image");
}

ImageShape jpeg_shape_of(JpegReader& reader, const std::string& where) {
  if (reader.file.empty()) throw_input("the JPEG image is empty", where, "use an undamaged image");
  if (!read_jpeg_header(reader)) refuse_jpeg(reader, where);
  const jpeg_decompress_struct& jpeg = reader.jpeg;
  check_pixels(jpeg.image_width, jpeg.image_height, where);
  const J_COLOR_SPACE kind = jpeg.jpeg_color_space;
  if (kind != JCS_GRAYSCALE && kind != JCS_YCbCr && kind != JCS_RGB)
    throw_input("the JPEG image is neither grayscale nor RGB", where,
                "use an image with 1 or 3 channels");
  return {kind == JCS_GRAYSCALE ? 1 : 3, jpeg.image_height, jpeg.image_width,
          jpeg_orientation(jpeg)};
}

ImageShape jpeg_shape(std::span<const std::byte> file, const std::string& where) {
  JpegReader reader(file);
  return jpeg_shape_of(reader, where);
}

void decode_jpeg(std::span<const std::byte> file, const std::string& where,
                 std::span<std::uint8_t> pixels) {
  JpegReader reader(file);
  const ImageShape shape = jpeg_shape_of(reader, where);
  CONCERTINA_CHECK(
      pixels.size() == static_cast<std::size_t>(shape.channels * shape.height * shape.width),
      "buffer of {} bytes for an image of {} x {}", pixels.size(), shape.height, shape.width);
  if (!read_jpeg_rows(reader, pixels.data())) refuse_jpeg(reader, where);
}

}  // namespace

const ImageCodec& jpeg_codec() {
  static constexpr ImageCodec kCodec{"libjpeg", "libjpeg62-turbo-dev", jpeg_shape, decode_jpeg};
  return kCodec;
}

}  // namespace concertina
