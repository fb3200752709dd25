#include "io/datasets/images.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.h"
#include "core/rng.h"
#include "io/datasets/content_hash.h"

namespace concertina {
namespace {

/// Pixel (y, x) of the augmented image is (y + down, x + right) of the stored one, or of its mirror
/// image.
struct Augmentation {
  std::int64_t down = 0, right = 0;
  bool mirrored = false;
};

Splits split_images(const DataOptions& options, const ImageSet& set) {
  const std::uint64_t all = set.counts[0] + set.counts[1] + set.counts[2];
  std::vector<ItemKey> keys;
  for (std::uint64_t i = 0; i < all; ++i)
    keys.push_back({set.store->content(i), set.store->label(i)});
  return split_items(options, set.counts,
                     {.keys = keys, .classes = set.classes, .words = {.item = "image"}});
}

class ImageDataset final : public Dataset {
 public:
  ImageDataset(const DataOptions& options, ImageSet set)
      : set_(std::move(set)),
        splits_(split_images(options, set_)),
        fields_{image_field(set_.channels, set_.height, set_.width), label_field()},
        crop_(options.crop),
        flip_(options.flip) {
    for (const double deviation : options.deviation)
      if (!(deviation > 0))
        throw_input(fmt::format("a deviation of {}", deviation), "data.deviation",
                    "a number above 0");
    for (std::int64_t c = 0; c < set_.channels; ++c) {
      const double mean = of_channel(options.mean, c, "data.mean");
      const double deviation = of_channel(options.deviation, c, "data.deviation");
      std::array<float, 256>& table = tables_.emplace_back();
      for (std::size_t value = 0; value < table.size(); ++value)
        table[value] = static_cast<float>((static_cast<double>(value) / 255 - mean) / deviation);
    }
  }

  std::span<const Field> fields() const override { return fields_; }
  std::span<const std::string> classes() const override { return set_.classes; }
  std::uint64_t samples(Split split) const override { return splits_.size(split); }
  const Splits* splits() const override { return &splits_; }
  std::int64_t targets_before(Split /*split*/, std::uint64_t sample) const override {
    return static_cast<std::int64_t>(sample);
  }
  bool repeats() const override { return crop_ == 0 && !flip_; }
  const Corpus& corpus() const override { return *set_.corpus; }
  std::string summary() const override {
    return split_summary(corpus(), splits_,
                         fmt::format("images of {} x {} x {}, {} classes", set_.channels,
                                     set_.height, set_.width, set_.classes.size()),
                         set_.classes);
  }

  void write(const SampleAt& at, std::span<const View> views) const override {
    const std::uint64_t item = splits_.item(at.split, at.sample);
    if (!views[1].empty()) *views[1].i32() = at.most > 0 ? set_.store->label(item) : kIgnored;
    if (views[0].empty()) return;
    std::vector<std::uint8_t> pixels(static_cast<std::size_t>(fields_[0].elements()));
    set_.store->read(item, pixels);
    draw(pixels, at.split == Split::train ? augmentation(at) : Augmentation{}, views[0].f32());
  }

 private:
  double of_channel(const std::vector<double>& values, std::int64_t channel,
                    const char* key) const {
    if (values.size() != 1 && std::ssize(values) != set_.channels)
      throw_input(fmt::format("{} numbers for images of {} channels", values.size(), set_.channels),
                  key,
                  set_.channels == 1 ? std::string("one number")
                                     : fmt::format("one number, or {}", set_.channels));
    return values[values.size() == 1 ? 0 : static_cast<std::size_t>(channel)];
  }

  Augmentation augmentation(const SampleAt& at) const {
    const auto low = [](std::uint64_t value) { return static_cast<std::uint32_t>(value); };
    const auto word =
        Rng(at.seed, Purpose::augment)
            .words(low(at.epoch), low(at.epoch >> 32), low(at.sample), low(at.sample >> 32));
    const auto places = static_cast<std::uint32_t>(2 * crop_ + 1);
    return {.down = word[0] % places - crop_,
            .right = word[1] % places - crop_,
            .mirrored = flip_ && (word[2] & 1) != 0};
  }

  void draw(std::span<const std::uint8_t> pixels, const Augmentation& how, float* out) const {
    const std::int64_t height = set_.height, width = set_.width;
    for (std::int64_t c = 0; c < set_.channels; ++c) {
      const std::array<float, 256>& table = tables_[static_cast<std::size_t>(c)];
      for (std::int64_t y = 0; y < height; ++y)
        for (std::int64_t x = 0; x < width; ++x) {
          const std::int64_t from_y = y + how.down;
          const std::int64_t from_x = (how.mirrored ? width - 1 - x : x) + how.right;
          const bool inside = from_y >= 0 && from_y < height && from_x >= 0 && from_x < width;
          *out++ = table[inside ? pixels[(c * height + from_y) * width + from_x] : 0];
        }
    }
  }

  ImageSet set_;
  Splits splits_;
  std::vector<Field> fields_;
  std::int64_t crop_;
  bool flip_;
  std::vector<std::array<float, 256>> tables_;  // of a channel: what a pixel is read as
};

}  // namespace

void ImagesInMemory::read(std::uint64_t item, std::span<std::uint8_t> out) const {
  CONCERTINA_CHECK(item < labels.size(), "image {} of {}", item, labels.size());
  std::copy_n(pixels.begin() + static_cast<std::ptrdiff_t>(item * out.size()), out.size(),
              out.begin());
}

std::uint64_t ImagesInMemory::content(std::uint64_t item) const {
  const std::size_t size = pixels.size() / labels.size();
  return content_hash(std::as_bytes(std::span(pixels).subspan(item * size, size)));
}

std::unique_ptr<Dataset> image_dataset(const DataOptions& options, ImageSet set) {
  return std::make_unique<ImageDataset>(options, std::move(set));
}

std::optional<Variation> images_vary(const DataOptions& options) {
  if (options.crop > 0)
    return Variation{fmt::format("data.crop = {}", options.crop), "data.crop = 0"};
  if (options.flip) return Variation{"data.flip = true", "data.flip = false"};
  return std::nullopt;
}

}  // namespace concertina
