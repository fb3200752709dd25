#include "io/images/cifar_records.h"

#include <filesystem>
#include <utility>

#include "core/error.h"
#include "io/datasets/class_names.h"
#include "io/datasets/gzip_file.h"

namespace concertina {
namespace {

constexpr std::int64_t kChannels = 3, kSide = 32;
constexpr std::size_t kPixels = kChannels * kSide * kSide;

[[noreturn]] void refuse_cifar(const std::string& what, const std::string& path, std::size_t at,
                               std::size_t record) {
  throw_input(what, fmt::format("{}: byte {}", path, at),
              fmt::format("use an original CIFAR binary file with records of {} bytes; "
                          "the formats are cifar10, cifar100 and cifar100-coarse",
                          record));
}

/// Appends the records of a file to `store`.
void append_records(const std::string& path, std::span<const CifarLabel> labels, std::size_t used,
                    ImagesInMemory& store) {
  const std::string bytes = read_maybe_gzip(path);
  const std::size_t record = labels.size() + kPixels, extra = bytes.size() % record;
  if (bytes.empty() || extra != 0)
    refuse_cifar(fmt::format("{} bytes are not a whole number of images", bytes.size()), path,
                 bytes.size() - extra, record);
  for (std::size_t at = 0; at < bytes.size(); at += record) {
    for (std::size_t l = 0; l < labels.size(); ++l) {
      const int label = static_cast<unsigned char>(bytes[at + l]);
      if (label >= labels[l].classes)
        refuse_cifar(fmt::format("{} {} of image {} is not in [0, {})", labels[l].word, label,
                                 at / record, labels[l].classes),
                     path, at + l, record);
      if (l == used) store.labels.push_back(label);
    }
    const auto image = bytes.begin() + static_cast<std::ptrdiff_t>(at + labels.size());
    store.pixels.insert(store.pixels.end(), image, image + kPixels);
  }
}

/// Returns the names in `path`, one per class.
std::vector<std::string> names_in(const std::string& path, int classes) {
  std::vector<std::string> names = class_names_in(path);
  if (std::ssize(names) != classes)
    throw_input(fmt::format("got {} names for {} classes", names.size(), classes), path,
                "use one line per class, or remove the file to use numbers");
  return names;
}

std::vector<std::string> class_names(const std::string& images_file, const CifarLabel& label) {
  const auto path = std::filesystem::path(images_file).parent_path() / label.names_file;
  if (std::filesystem::exists(path)) return names_in(path.string(), label.classes);
  std::vector<std::string> numbers;
  for (int i = 0; i < label.classes; ++i) numbers.push_back(std::to_string(i));
  return numbers;
}

}  // namespace

std::unique_ptr<Dataset> cifar_dataset(const DataOptions& options,
                                       std::span<const CifarLabel> labels, std::size_t used) {
  const SplitFiles files = split_files(options);
  auto store = std::make_unique<ImagesInMemory>();
  store->size = {kChannels, kSide, kSide};
  const auto counts =
      files.read([&](const std::string& path) { append_records(path, labels, used, *store); },
                 [&] { return store->labels.size(); });
  ImageSet set{.classes = class_names(files.of[0].front(), labels[used]),
               .corpus = files.corpus,
               .counts = counts};
  set.store = std::move(store);
  return image_dataset(options, std::move(set));
}

}  // namespace concertina
