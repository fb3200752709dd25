// Labelled images as samples: brought to one size, augmented in training (io/images/augment.h),
// pixels normalised to fp32.
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

/// Images of one number of channels and their labels, by number through all splits.
class ImageStore {
 public:
  virtual ~ImageStore() = default;
  /// Channels of all images; height and width of the first, and of all where data.size = 0.
  virtual const ImageShape& shape() const = 0;
  /// For several threads at once.
  virtual Picture read(std::uint64_t item) const = 0;
  virtual std::int32_t label(std::uint64_t item) const = 0;
  /// A hash (io/datasets/content_hash.h) of what the image is made of.
  virtual std::uint64_t content(std::uint64_t item) const = 0;
  /// As Dataset::verify().
  virtual void verify(const std::function<void()>& progress) const = 0;
};

/// Images that are in memory, one after the other.
class ImagesInMemory final : public ImageStore {
 public:
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;
  ImageShape size{};

  const ImageShape& shape() const override { return size; }
  Picture read(std::uint64_t item) const override;
  std::int32_t label(std::uint64_t item) const override { return labels[item]; }
  std::uint64_t content(std::uint64_t item) const override;
  void verify(const std::function<void()>&) const override {}  // they are decoded
};

struct ImageSet {
  std::unique_ptr<const ImageStore> store{};
  std::vector<std::string> classes{};
  std::shared_ptr<const Corpus> corpus{};
  std::array<std::uint64_t, 3> counts{};  // images in the files of each split
};

/// Fields image [C, H, W] = (pixel / 255 - mean) / deviation, these of the channel, and label. H =
/// W = data.size, if any; in training images are augmented. Input errors: as many means or
/// deviations as are neither one nor C; a deviation that is not above 0; images too long for their
/// size; those of split_items().
std::unique_ptr<Dataset> image_dataset(const DataOptions& options, ImageSet set);
/// A format of images, with their options.
DatasetFormat image_format(std::unique_ptr<Dataset> (*make)(const DataOptions& options));
/// How its images get one size.
PictureFit fit_of(const DataOptions& options);

}  // namespace concertina
