// Labelled images as samples: resized to a common size, augmented in training
// (io/images/augment.h), and normalized to fp32.
//
// Dimensions: C channels, H rows, W columns.
#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "io/datasets/split_files.h"
#include "io/images/image_codec.h"
#include "io/images/picture.h"

namespace concertina {

/// Images with the same number of channels and their labels, numbered across all splits.
class ImageStore {
 public:
  virtual ~ImageStore() = default;
  /// Channels of all images, and height and width of the first image, or of all if data.size = 0.
  virtual const ImageShape& shape() const = 0;
  /// Thread-safe.
  virtual Picture read(std::uint64_t item) const = 0;
  virtual std::int32_t label(std::uint64_t item) const = 0;
  /// Returns a hash (io/datasets/content_hash.h) of the image data.
  virtual std::uint64_t content(std::uint64_t item) const = 0;
  /// See Dataset::verify().
  virtual void verify(const std::function<void()>& progress) const = 0;
};

/// Images stored contiguously in memory.
class ImagesInMemory final : public ImageStore {
 public:
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
  ImageShape size{};

  const ImageShape& shape() const override { return size; }
  Picture read(std::uint64_t item) const override;
  std::int32_t label(std::uint64_t item) const override { return labels[item]; }
  std::uint64_t content(std::uint64_t item) const override;
  void verify(const std::function<void()>&) const override {}  // already decoded
};

struct ImageSet {
  std::unique_ptr<const ImageStore> store{};
  std::vector<std::string> classes{};
  std::shared_ptr<const Corpus> corpus{};
  std::array<std::uint64_t, 3> counts{};  // images in the files of each split
};

/// Returns a dataset with the fields label and image [C, H, W] = (pixel / 255 - mean) / deviation,
/// with each channel's mean and deviation. H = W = data.size if that is set. Training images are
/// augmented. Throws Error{bad_input} if the number of means or deviations is neither 1 nor C, a
/// deviation is not positive, images are too elongated, or split_items() throws.
std::unique_ptr<Dataset> image_dataset(const DataOptions& options, ImageSet set);
/// Returns an image format with the common options.
DatasetFormat image_format(std::unique_ptr<Dataset> (*make)(const DataOptions& options));
/// Returns how images are brought to a common size.
PictureFit fit_of(const DataOptions& options);

}  // namespace concertina
