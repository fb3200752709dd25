// PNG and JPEG images, decoded on demand.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/datasets/content_hash.h"
#include "io/images/image_codec.h"
#include "io/images/images.h"
#include "io/images/picture.h"

namespace concertina {

/// The properties of an image before decoding.
struct EncodedImage {
  const ImageCodec* codec = nullptr;
  ImageShape shape{};
  std::int32_t label = 0;
  std::uint64_t content = 0;  // see packed_content()
};

/// Throws Error{bad_input} with `place` if this build lacks the codec's library.
void require_codec(const ImageCodec& codec, const std::string& place);

/// Returns a hash of an image file of `size` bytes. For a large file, only the ends and the middle
/// are read. `bytes_at(offset, count)` returns bytes of the file.
template <class BytesAt>
std::uint64_t packed_content(std::uint64_t size, const BytesAt& bytes_at);

/// Maximum number of pixels to decode before training: about half a minute's work for one core.
inline constexpr std::uint64_t kMostDecoded = std::uint64_t{1} << 32;

/// Images rotated according to Exif; grayscale images become RGB if others are RGB.
class EncodedImages : public ImageStore {
 public:
  explicit EncodedImages(PictureFit fit) : fit_(std::move(fit)) {}

  Picture read(std::uint64_t item) const final;
  std::int32_t label(std::uint64_t item) const final { return items_[item].label; }
  std::uint64_t content(std::uint64_t item) const final { return items_[item].content; }
  /// Decodes each image, or every n-th one if there are more than kMostDecoded pixels.
  void verify(const std::function<void()>& progress) const final;
  std::uint64_t size() const { return items_.size(); }
  const ImageShape& shape() const final { return shape_; }
  /// Returns the location of an image for messages.
  virtual std::string place(std::uint64_t item) const = 0;

 protected:
  /// Returns the file of an image, stored in `buffer` or owned by this object.
  virtual std::span<const std::byte> bytes(std::uint64_t item, std::string& buffer) const = 0;
  /// Throws Error{bad_input} with `place` if data.size = 0 and the size differs from that of the
  /// first image, or if the image is too elongated to be scaled.
  void add(const EncodedImage& image, const std::string& place);

 private:
  PictureFit fit_;
  std::vector<EncodedImage> items_;
  ImageShape shape_;
  std::uint64_t pixels_ = 0;  // of all images
};

template <class BytesAt>
std::uint64_t packed_content(std::uint64_t size, const BytesAt& bytes_at) {
  constexpr std::uint64_t kPage = 4096;
  if (size <= 3 * kPage) return content_hash(bytes_at(0, size));
  const std::uint64_t parts[] = {size, content_hash(bytes_at(0, kPage)),
                                 content_hash(bytes_at(size / 2, kPage)),
                                 content_hash(bytes_at(size - kPage, kPage))};
  return content_hash(std::as_bytes(std::span(parts)));
}

}  // namespace concertina
