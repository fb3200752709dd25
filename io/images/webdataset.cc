// data.format = "webdataset": tars of images (png, jpg, jpeg) and labels (cls).
#include <algorithm>
#include <filesystem>
#include <utility>

#include "core/error.h"
#include "core/text/number_text.h"
#include "io/datasets/class_names.h"
#include "io/images/encoded_images.h"
#include "io/images/webdataset_samples.h"

namespace concertina::dataset_makers {
namespace {

constexpr std::int32_t kMostClasses = 1 << 20;
constexpr std::string_view kNamesFile = "classes.txt";

const ImageCodec& codec_for(const TarMember& member) {
  return *codec_of(member_key(member.name).extension);
}

class ImagesInTars final : public EncodedImages {
 public:
  using EncodedImages::EncodedImages;

  void add_samples(const std::string& path) {
    const TarShard& shard =
        *shards_.emplace_back(std::make_unique<TarShard>(path, is_image_or_label));
    for (const ShardSample& sample : shard_samples(shard)) {
      const std::string where = member_place(shard, *sample.image);
      const ImageCodec& codec = codec_for(*sample.image);
      require_codec(codec, where);
      const std::span<const std::byte> file = shard.bytes(*sample.image);
      const auto bytes_at = [&](std::uint64_t at, std::uint64_t n) { return file.subspan(at, n); };
      add({&codec, codec.shape(file, where), label_in(shard, *sample.label),
           packed_content(file.size(), bytes_at)},
          where);
      samples_.push_back({&shard, sample});
    }
  }

  std::string place(std::uint64_t item) const override {
    return member_place(*samples_[item].shard, *samples_[item].members.image);
  }
  /// Returns the location of the label of an item.
  std::string label_place(std::uint64_t item) const {
    return member_place(*samples_[item].shard, *samples_[item].members.label);
  }

 private:
  struct Sample {
    const TarShard* shard;
    ShardSample members;
  };

  std::span<const std::byte> bytes(std::uint64_t item, std::string& /*buffer*/) const override {
    return samples_[item].shard->bytes(*samples_[item].members.image);
  }

  static std::int32_t label_in(const TarShard& shard, const TarMember& member) {
    const std::span<const std::byte> bytes = shard.bytes(member);
    std::string_view text(reinterpret_cast<const char*>(bytes.data()), bytes.size());
    while (!text.empty() && (text.back() == '\n' || text.back() == '\r' || text.back() == ' '))
      text.remove_suffix(1);
    const std::int32_t number = parse_number<std::int32_t>(text).value_or(-1);
    if (number < 0 || number >= kMostClasses)
      throw_input("the label is not a class number", member_place(shard, member),
                  fmt::format("use a decimal integer in [0, {})", kMostClasses));
    return number;
  }

  std::vector<std::unique_ptr<const TarShard>> shards_;
  std::vector<Sample> samples_;
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

/// Returns the classes: the lines of classes.txt next to the first tar, or numbers up to the
/// largest label of the first `training` items. Throws for any other label.
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
      throw_input(fmt::format("label {} is not in [0, {})", store.label(i), classes.size()),
                  store.label_place(i),
                  named ? fmt::format("use a class in {}", path.string())
                        : fmt::format("use a label in data.files, or list all classes in {}",
                                      path.string()));
  return classes;
}

std::unique_ptr<Dataset> make_webdataset(const DataOptions& options) {
  const SplitFiles files = split_files(expanded(options));
  auto store = std::make_unique<ImagesInTars>(fit_of(options));
  const auto counts = files.read([&](const std::string& path) { store->add_samples(path); },
                                 [&] { return store->size(); });
  ImageSet set{.classes = classes_of(*store, counts[0], files.of[0].front()),
               .corpus = files.corpus,
               .counts = counts};
  set.store = std::move(store);
  return image_dataset(options, std::move(set));
}

}  // namespace

DatasetFormat webdataset() {
  return image_format(make_webdataset);
}

}  // namespace concertina::dataset_makers
