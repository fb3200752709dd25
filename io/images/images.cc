#include "io/images/images.h"

#include <algorithm>
#include <array>
#include <utility>

#include "core/error.h"
#include "io/datasets/content_hash.h"
#include "io/images/augment.h"
#include "io/images/picture_ops.h"

namespace concertina {
namespace {

Splits split_images(const DataOptions& options, const ImageSet& set) {
  const std::uint64_t all = set.counts[0] + set.counts[1] + set.counts[2];
  std::vector<ItemKey> keys;
  for (std::uint64_t i = 0; i < all; ++i)
    keys.push_back({set.store->content(i), set.store->label(i), set.store->content(i)});
  return split_items(options, set.counts,
                     {.keys = keys, .classes = set.classes, .words = {.item = "image"}});
}

Augmentation augmentation_of(const DataOptions& options) {
  const auto whole = [&](const char* name) {
    return static_cast<int>(options.own<std::int64_t>(name));
  };
  const auto number = [&](const char* name) { return options.own<double>(name); };
  return {.crop = whole("crop"),
          .flip = options.own<bool>("flip"),
          .scale = number("scale"),
          .rotate = number("rotate"),
          .brightness = number("brightness"),
          .contrast = number("contrast"),
          .saturation = number("saturation"),
          .randaugment = whole("randaugment"),
          .magnitude = whole("magnitude")};
}

/// Returns the option that makes images differ between epochs, if any.
std::optional<Variation> images_vary(const DataOptions& options) {
  const Augmentation how = augmentation_of(options);
  const auto number = [](const char* key, double value, int never) -> std::optional<Variation> {
    if (value == never) return std::nullopt;
    return Variation{fmt::format("data.{} = {}", key, value),
                     fmt::format("data.{} = {}", key, never)};
  };
  if (how.flip) return Variation{"data.flip = true", "data.flip = false"};
  for (auto one :
       {number("crop", how.crop, 0), number("scale", how.scale, 1), number("rotate", how.rotate, 0),
        number("brightness", how.brightness, 0), number("contrast", how.contrast, 0),
        number("saturation", how.saturation, 0), number("randaugment", how.randaugment, 0)})
    if (one) return one;
  return std::nullopt;
}

class ImageDataset final : public FileDataset {
 public:
  ImageDataset(const DataOptions& options, ImageSet set)
      : set_(std::move(set)),
        splits_(split_images(options, set_)),
        fit_(fit_of(options)),
        augmentation_(augmentation_of(options)),
        fields_{fit_.size > 0 ? image_field(shape().channels, fit_.size, fit_.size)
                              : image_field(shape().channels, shape().height, shape().width),
                label_field()},
        varies_(images_vary(options).has_value()) {
    check_fit(fit_, shape().height, shape().width, "data.size");
    const auto& means = options.own<std::vector<double>>("mean");
    const auto& deviations = options.own<std::vector<double>>("deviation");
    for (std::int64_t c = 0; c < shape().channels; ++c) {
      const double mean = of_channel(means, c, "data.mean");
      const double deviation = of_channel(deviations, c, "data.deviation");
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
  bool repeats() const override { return !varies_; }
  const Corpus& corpus() const override { return *set_.corpus; }
  void verify(const std::function<void()>& progress) const override {
    set_.store->verify(progress);
  }
  std::string summary() const override {
    return split_summary(corpus(), splits_,
                         fmt::format("images of {} x {} x {}, {} classes", shape().channels,
                                     fields_[0].shape[1], fields_[0].shape[2], set_.classes.size()),
                         set_.classes);
  }

  void write(const SampleAt& at, std::span<const View> views) const override {
    const std::uint64_t item = splits_.item(at.split, at.sample);
    if (!views[1].empty()) *views[1].i32() = at.most > 0 ? set_.store->label(item) : kIgnored;
    if (views[0].empty()) return;
    Picture picture = set_.store->read(item);
    picture = at.split == Split::train && varies_
                  ? augmented(std::move(picture), augmentation_, fit_, at)
                  : fitted(std::move(picture), fit_);
    CONCERTINA_CHECK(std::ssize(picture.pixels) == fields_[0].elements(),
                     "unexpected image of {} x {}", picture.height, picture.width);
    float* out = views[0].f32();
    const std::uint8_t* pixel = picture.pixels.data();
    for (const std::array<float, 256>& table : tables_)
      for (std::int64_t i = 0; i < picture.plane(); ++i) *out++ = table[*pixel++];
  }

 private:
  const ImageShape& shape() const { return set_.store->shape(); }

  double of_channel(const std::vector<double>& values, std::int64_t channel,
                    const char* key) const {
    if (values.size() != 1 && std::ssize(values) != shape().channels)
      throw_input(fmt::format("{} numbers for {}-channel images", values.size(), shape().channels),
                  key,
                  shape().channels == 1 ? std::string("use one number")
                                        : fmt::format("use one number, or {}", shape().channels));
    return values[values.size() == 1 ? 0 : static_cast<std::size_t>(channel)];
  }

  ImageSet set_;
  Splits splits_;
  PictureFit fit_;
  Augmentation augmentation_;
  std::vector<Field> fields_;
  bool varies_;
  std::vector<std::array<float, 256>> tables_;  // per channel: value of each pixel level
};

}  // namespace

Picture ImagesInMemory::read(std::uint64_t item) const {
  CONCERTINA_CHECK(item < labels.size(), "image {} is not in [0, {})", item, labels.size());
  const std::int64_t bytes = size.channels * size.height * size.width;
  const auto first = pixels.begin() + static_cast<std::ptrdiff_t>(item) * bytes;
  return {size.channels, size.height, size.width, {first, first + bytes}};
}

std::uint64_t ImagesInMemory::content(std::uint64_t item) const {
  const std::size_t bytes = pixels.size() / labels.size();
  return content_hash(std::as_bytes(std::span(pixels).subspan(item * bytes, bytes)));
}

std::unique_ptr<Dataset> image_dataset(const DataOptions& options, ImageSet set) {
  return std::make_unique<ImageDataset>(options, std::move(set));
}

PictureFit fit_of(const DataOptions& options) {
  return {options.own<std::int64_t>("size"), options.own<std::int64_t>("resize"),
          options.own<std::string>("fit"), options.own<std::string>("interpolation")};
}

namespace {

using Whole = std::int64_t;

std::vector<Option> pixel_options() {
  const std::vector<double> half{0.5};
  return {
      {"mean", half,
       "mean of the pixels: a pixel p in [0, 1] becomes (p - mean) / deviation; one number for "
       "all channels, or a list with one per channel"},
      {.name = "deviation",
       .default_value = half,
       .help = "standard deviation of the pixels; see data.mean",
       .low = 0,
       .above_low = true},
      {"size", Whole{0},
       "side in pixels of the squares to which images are scaled; 0: images are not scaled and "
       "must have the same size",
       0, 4096},
      {"resize", Whole{0},
       "length in pixels of the shorter side before the center crop; 0: data.size", 0, 8192},
      choice("fit", kFits[0],
             "how an image becomes a square: by cropping the center of the scaled image (cut), or "
             "by distorting the whole image (stretch)",
             {std::begin(kFits), std::end(kFits)}),
      choice("interpolation", kInterpolations[0],
             "interpolation filter for scaling, with antialiasing, as in "
             "Pillow",
             {std::begin(kInterpolations), std::end(kInterpolations)})};
}

std::vector<Option> augmentation_options() {
  return {
      {"crop", Whole{0},
       "maximum shift of an image in pixels, random in each epoch; the margin is filled with zeros",
       0, 1024},
      {"flip", false, "whether to mirror images horizontally at random in each epoch"},
      {.name = "scale",
       .default_value = 1.0,
       .help = "smallest share of an image's area in a random crop in each epoch; the crop has an "
               "aspect ratio from 3:4 to 4:3 and is scaled to full size (torchvision's "
               "RandomResizedCrop); 1: no crop",
       .low = 0,
       .high = 1,
       .above_low = true},
      {"rotate", 0.0, "maximum random rotation of an image in degrees", 0, 180},
      {"brightness", 0.0, "maximum deviation of the random brightness factor from 1", 0, 1},
      {"contrast", 0.0, "maximum deviation of the random contrast factor from 1", 0, 1},
      {"saturation", 0.0, "maximum deviation of the random saturation factor from 1", 0, 1},
      {"randaugment", Whole{0},
       "number of random operations on an image in each epoch, from RandAugment's 14 (rotations, "
       "shears, shifts, colors); 0: none",
       0, 16},
      {"magnitude", Whole{9}, "strength of the operations of data.randaugment", 0, kMostMagnitude}};
}

void check_options(const OptionValues& options) {
  const auto size = option<std::int64_t>(options, "size");
  const auto resize = option<std::int64_t>(options, "resize");
  if (resize != 0 && resize < size)
    throw_input(fmt::format("cannot crop a side of {1} pixels to {0} pixels", size, resize),
                "data.resize", "use data.resize >= data.size, or 0");
  if (size == 0 && (resize != 0 || option<std::string>(options, "fit") != kFits[0]))
    throw_input(
        "data.resize and data.fit have no effect with data.size = 0, which disables "
        "scaling",
        "data.size", "set data.size, for example to 224");
}

}  // namespace

DatasetFormat image_format(std::unique_ptr<Dataset> (*make)(const DataOptions& options)) {
  return {.make = make,
          .varies = images_vary,
          .keys = {"data.test"},
          .binary = true,
          .options = joined({split_options(), pixel_options(), augmentation_options()}),
          .check = check_options};
}

}  // namespace concertina
