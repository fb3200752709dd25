// data.format = "webdataset": tars of images (png, jpg, jpeg) and labels (cls).
#include <algorithm>
#include <array>
#include <charconv>
#include <filesystem>
#include <utility>

#include "core/error.h"
#include "io/datasets/class_names.h"
#include "io/datasets/content_hash.h"
#include "io/datasets/image_codec.h"
#include "io/datasets/images.h"
#include "io/datasets/webdataset_samples.h"

namespace concertina::dataset_makers {
namespace {

constexpr std::size_t kPage = 4096;
constexpr std::int32_t kMostClasses = 1 << 20;
constexpr std::string_view kNamesFile = "classes.txt";

const ImageCodec& codec_for(const TarMember& member) {
  return *codec_of(member_key(member.name).extension);
}

/// Images of tars, decoded when they are read; grey ones are the same in each of three channels
/// where others have colour.
class ImagesInTars final : public ImageStore {
 public:
  /// Appends the samples of a tar; the place of the first image that differs in size is an error.
  void add(TarShard opened) {
    shards_.push_back(std::make_unique<TarShard>(std::move(opened)));
    const TarShard& shard = *shards_.back();
    for (const ShardSample& sample : shard_samples(shard)) {
      const ImageShape shape = shape_in(shard, *sample.image);
      if (items_.empty()) shape_ = shape;
      if (shape.height != shape_.height || shape.width != shape_.width)
        throw_input(fmt::format("an image of {} x {} among others of {} x {}", shape.height,
                                shape.width, shape_.height, shape_.width),
                    member_place(shard, *sample.image),
                    "images of one height and width: scale them before they are packed");
      shape_.channels = std::max(shape_.channels, shape.channels);
      items_.push_back(
          {&shard, sample.image, sample.label, shape.channels, label_in(shard, *sample.label)});
    }
  }

  const ImageShape& shape() const { return shape_; }
  std::uint64_t size() const { return items_.size(); }
  std::int32_t label(std::uint64_t item) const override { return items_[item].number; }
  /// A hash of the packed image, or of a large one's ends and middle, so that few pages of a tar
  /// are read.
  std::uint64_t content(std::uint64_t item) const override {
    const std::span<const std::byte> bytes = items_[item].shard->bytes(*items_[item].image);
    if (bytes.size() <= 3 * kPage) return content_hash(bytes);
    const std::array parts{bytes.size(), content_hash(bytes.first(kPage)),
                           content_hash(bytes.subspan(bytes.size() / 2, kPage)),
                           content_hash(bytes.last(kPage))};
    return content_hash(std::as_bytes(std::span(parts)));
  }
  /// Where the label of an item is.
  std::string label_place(std::uint64_t item) const {
    return member_place(*items_[item].shard, *items_[item].label);
  }

  void read(std::uint64_t item, std::span<std::uint8_t> pixels) const override {
    const Item& from = items_[item];
    const std::size_t plane = pixels.size() / static_cast<std::size_t>(shape_.channels);
    const auto channels = static_cast<std::size_t>(from.channels);
    std::vector<std::uint8_t> decoded(plane * channels);
    codec_for(*from.image)
        .decode(from.shard->bytes(*from.image), member_place(*from.shard, *from.image), decoded);
    for (std::size_t c = 0; c < static_cast<std::size_t>(shape_.channels); ++c)
      for (std::size_t i = 0; i < plane; ++i)
        pixels[c * plane + i] = decoded[i * channels + (channels == 1 ? 0 : c)];
  }

 private:
  struct Item {
    const TarShard* shard;
    const TarMember *image, *label;
    std::int64_t channels;
    std::int32_t number;
  };

  static ImageShape shape_in(const TarShard& shard, const TarMember& image) {
    const ImageCodec& codec = codec_for(image);
    if (!codec.available())
      throw_input(fmt::format("this program was built without {}", codec.library),
                  member_place(shard, image),
                  fmt::format("install {} and build again", codec.package));
    return codec.shape(shard.bytes(image), member_place(shard, image));
  }

  static std::int32_t label_in(const TarShard& shard, const TarMember& member) {
    const std::span<const std::byte> bytes = shard.bytes(member);
    std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
      text.remove_suffix(1);
    std::int32_t number = -1;
    const auto [end, code] = std::from_chars(text.data(), text.data() + text.size(), number);
    if (code != std::errc{} || end != text.data() + text.size() || number < 0 ||
        number >= kMostClasses)
      throw_input("the label is not the number of a class", member_place(shard, member),
                  fmt::format("a whole number in [0, {}) in decimal digits", kMostClasses));
    return number;
  }

  std::vector<std::unique_ptr<const TarShard>> shards_;
  std::vector<Item> items_;
  ImageShape shape_;
};

DataOptions expanded(const DataOptions& options) {
  DataOptions all = options;
  const auto expand = [](std::vector<std::string>& patterns, const std::string& where) {
    std::vector<std::string> names;
    for (const std::string& pattern : patterns)
      for (std::string& name : expand_braces(pattern, where)) names.push_back(std::move(name));
    patterns = std::move(names);
  };
  expand(all.files, "data.files");
  expand(all.validation_files, "data.validation_files");
  expand(all.test_files, "data.test_files");
  return all;
}

/// The classes: the lines of classes.txt beside the first tar, else the numbers up to the largest
/// label of the first `training` items. Throws for a label that is none of them.
std::vector<std::string> classes_of(const ImagesInTars& store, std::uint64_t training,
                                    const std::string& first_tar) {
  const auto path = std::filesystem::path(first_tar).parent_path() / kNamesFile;
  const bool named = std::filesystem::exists(path);
  std::vector<std::string> classes;
  if (named) {
    classes = class_names_in(path.string());
  } else {
    std::int32_t largest = -1;
    for (std::uint64_t i = 0; i < training; ++i) largest = std::max(largest, store.label(i));
    for (std::int32_t i = 0; i <= largest; ++i) classes.push_back(std::to_string(i));
  }
  for (std::uint64_t i = 0; i < store.size(); ++i)
    if (store.label(i) >= std::ssize(classes))
      throw_input(
          fmt::format("label {} is not in [0, {})", store.label(i), classes.size()),
          store.label_place(i),
          named ? fmt::format("a class of {}", path.string())
                : fmt::format("a label that data.files has, or all classes in {}", path.string()));
  return classes;
}

std::unique_ptr<Dataset> make_webdataset(const DataOptions& options) {
  const SplitFiles files = split_files(expanded(options));
  auto store = std::make_unique<ImagesInTars>();
  std::array<std::uint64_t, 3> counts{};
  for (std::size_t split = 0; split < counts.size(); ++split) {
    const std::uint64_t before = store->size();
    for (const std::string& path : files.of[split]) store->add(TarShard(path, is_image_or_label));
    counts[split] = store->size() - before;
  }
  const ImageShape shape = store->shape();
  ImageSet set{.channels = shape.channels,
               .height = shape.height,
               .width = shape.width,
               .classes = classes_of(*store, counts[0], files.of[0].front()),
               .corpus = files.corpus,
               .counts = counts};
  set.store = std::move(store);
  return image_dataset(options, std::move(set));
}

}  // namespace

DatasetFormat webdataset() {
  return {.make = make_webdataset, .varies = images_vary, .keys = kImageKeys};
}

}  // namespace concertina::dataset_makers
