#include "io/images/encoded_images.h"

#include <algorithm>

#include "core/error.h"
#include "core/log.h"
#include "io/for_all.h"

namespace concertina {
namespace {

/// The stored position of the displayed pixel (y, x): first + y * down + x * right.
struct PixelOrder {
  std::int64_t first, down, right;
};

/// `orientation` is Exif's (CIPA DC-008, tag 0x112), 2 to 8; the size is that of the stored image.
PixelOrder order_of(int orientation, std::int64_t height, std::int64_t width) {
  const std::int64_t end = height * width - 1, last_row = end - width + 1, last_column = width - 1;
  const PixelOrder orders[] = {
      {last_column, width, -1}, {end, -width, -1}, {last_row, -width, 1},   {0, 1, width},
      {last_row, 1, -width},    {end, -1, -width}, {last_column, -1, width}};
  return orientation < 2 || orientation > 8 ? PixelOrder{0, width, 1} : orders[orientation - 2];
}

/// Returns the displayed shape.
ImageShape seen(const ImageShape& stored) {
  if (stored.orientation < 5) return {stored.channels, stored.height, stored.width};
  return {stored.channels, stored.width, stored.height};
}

}  // namespace

void require_codec(const ImageCodec& codec, const std::string& place) {
  if (!codec.available())
    throw_input(fmt::format("this program was built without {}", codec.library), place,
                fmt::format("install {} and rebuild", codec.package));
}

void EncodedImages::add(const EncodedImage& image, const std::string& place) {
  const ImageShape shape = seen(image.shape);
  if (items_.empty()) shape_ = shape;
  if (fit_.size == 0 && (shape.height != shape_.height || shape.width != shape_.width))
    throw_input(fmt::format("got an image of {} x {} after images of {} x {}", shape.height,
                            shape.width, shape_.height, shape_.width),
                place, "use images of the same size, or set data.size to scale all of them");
  check_fit(fit_, shape.height, shape.width, place);
  shape_.channels = std::max(shape_.channels, shape.channels);
  items_.push_back(image);
  pixels_ += static_cast<std::uint64_t>(shape.height * shape.width);
}

void EncodedImages::verify(const std::function<void()>& progress) const {
  const std::uint64_t every = pixels_ / kMostDecoded + 1;
  if (every > 1)
    log::info(
        "checking 1 of every {} images before training, because they have {} pixels in total; an "
        "unreadable image among the others will stop the run after a checkpoint",
        every, pixels_);
  for_all((size() + every - 1) / every, progress, [&](std::size_t i) { read(i * every); });
}

Picture EncodedImages::read(std::uint64_t item) const {
  const EncodedImage& image = items_[item];
  const ImageShape shape = seen(image.shape);
  const std::int64_t channels = shape.channels, plane = shape.height * shape.width;
  std::string buffer;
  std::vector<std::uint8_t> decoded(static_cast<std::size_t>(plane * channels));
  image.codec->decode(bytes(item, buffer), place(item), decoded);
  const PixelOrder order = order_of(image.shape.orientation, image.shape.height, image.shape.width);
  Picture picture = black_picture(shape_.channels, shape.height, shape.width);
  std::uint8_t* out = picture.pixels.data();
  for (std::int64_t c = 0; c < shape_.channels; ++c)
    for (std::int64_t y = 0; y < shape.height; ++y) {
      const std::uint8_t* from =
          decoded.data() + (order.first + y * order.down) * channels + (channels == 1 ? 0 : c);
      for (std::int64_t x = 0; x < shape.width; ++x) *out++ = from[x * order.right * channels];
    }
  return picture;
}

}  // namespace concertina
