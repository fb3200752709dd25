// Images as files of PNG or JPEG have them, decoded when they are read.
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

/// What is known of an image before it is decoded.
struct EncodedImage {
  const ImageCodec* codec = nullptr;
  ImageShape shape{};
  std::int32_t label = 0;
  std::uint64_t content = 0;  // see packed_content()
};

/// Throws an input error for `place` where the program was built without the codec's library.
void require_codec(const ImageCodec& codec, const std::string& place);

/// A hash of an image's file of `size` bytes; of a large one of its ends and middle, so that few
/// pages are read. `bytes_at(offset, count)` are bytes of it.
template <class BytesAt>
std::uint64_t packed_content(std::uint64_t size, const BytesAt& bytes_at);

/// Pixels that are decoded before training, about half a minute of one core.
inline constexpr std::uint64_t kMostDecoded = std::uint64_t{1} << 32;

/// Images turned as their Exif says, grey ones as colour where others have colour.
class EncodedImages : public ImageStore {
 public:
  explicit EncodedImages(PictureFit fit) : fit_(std::move(fit)) {}

  Picture read(std::uint64_t item) const final;
  std::int32_t label(std::uint64_t item) const final { return items_[item].label; }
  std::uint64_t content(std::uint64_t item) const final { return items_[item].content; }
  /// Decodes each image; of more than kMostDecoded pixels in all every n-th one.
  void verify(const std::function<void()>& progress) const final;
  std::uint64_t size() const { return items_.size(); }
  const ImageShape& shape() const final { return shape_; }
  /// For messages.
  virtual std::string place(std::uint64_t item) const = 0;

 protected:
  /// The file of an image, in `buffer` or where it lives as long as this.
  virtual std::span<const std::byte> bytes(std::uint64_t item, std::string& buffer) const = 0;
  /// Input errors, for `place`: an image of another size than the first, where data.size = 0; one
  /// that is too long to be scaled.
  void add(const EncodedImage& image, const std::string& place);

 private:
  PictureFit fit_;
  std::vector<EncodedImage> items_;
  ImageShape shape_;
  std::uint64_t pixels_ = 0;  // of all
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
