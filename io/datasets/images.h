// Labelled images as samples: pixels normalised to fp32, augmented in training.
// Invariant: how an image is cropped and mirrored is a pure function of (seed, epoch, sample).
//
// Dimensions: C channels, H rows, W columns.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "io/datasets/split_files.h"

namespace concertina {

/// Images of one size and their labels, by number through all splits.
class ImageStore {
 public:
  virtual ~ImageStore() = default;
  /// The pixels [C, H, W] of image `item`, 0 to 255. For several threads at once.
  virtual void read(std::uint64_t item, std::span<std::uint8_t> pixels) const = 0;
  virtual std::int32_t label(std::uint64_t item) const = 0;
  /// A hash (io/datasets/content_hash.h) of what the image is made of.
  virtual std::uint64_t content(std::uint64_t item) const = 0;
};

/// Images that are in memory, one after the other.
class ImagesInMemory final : public ImageStore {
 public:
  std::vector<std::uint8_t> pixels;
  std::vector<std::int32_t> labels;

  void read(std::uint64_t item, std::span<std::uint8_t> out) const override;
  std::int32_t label(std::uint64_t item) const override { return labels[item]; }
  std::uint64_t content(std::uint64_t item) const override;
};

struct ImageSet {
  std::unique_ptr<const ImageStore> store{};
  std::int64_t channels = 0, height = 0, width = 0;
  std::vector<std::string> classes{};
  std::shared_ptr<const Corpus> corpus{};
  std::array<std::uint64_t, 3> counts{};  // images in the files of each split
};

/// Fields image [C, H, W] = (pixel / 255 - mean) / deviation, these of the channel, and label. In
/// training, the image is read from a place up to data.crop pixels off, with pixels of value 0
/// around it, and mirrored in half of all cases with data.flip. Input errors: as many means or
/// deviations as are neither one nor C; a deviation that is not above 0; those of split_items().
std::unique_ptr<Dataset> image_dataset(const DataOptions& options, ImageSet set);
/// Augmented images differ in each epoch.
/// Keys of [data] that images read.
inline constexpr auto kImageKeys =
    with_split_keys({"data.mean", "data.deviation", "data.crop", "data.flip"});
std::optional<Variation> images_vary(const DataOptions& options);

}  // namespace concertina
