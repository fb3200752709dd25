// data.format = "mnist": idx files of images and of labels, plain or gzip, like those of MNIST and
// datasets modeled on it (Fashion-MNIST, EMNIST and its letters). The layout (LeCun, Cortes and
// Burges): big-endian u32 magic (0x803 images, 0x801 labels), then the sizes (u32 each), then
// bytes. The i-th image file belongs to the i-th label file.
#include <algorithm>
#include <array>

#include "core/error.h"
#include "io/datasets/gzip_file.h"
#include "io/images/images.h"

namespace concertina::dataset_makers {
namespace {

constexpr std::uint32_t kImages = 0x803, kLabels = 0x801;
constexpr int kLeastClasses = 10;  // a file may lack the last digits

struct IdxFile {
  std::string path, bytes;
  std::uint32_t magic = 0;
  std::array<std::uint64_t, 3> sizes{1, 1, 1};
  std::size_t data = 0;  // offset of the data

  std::uint32_t word(std::size_t at) const {
    std::uint32_t value = 0;
    for (std::size_t i = at; i < at + 4; ++i)
      value = value << 8 | static_cast<unsigned char>(bytes[i]);
    return value;
  }
};

[[noreturn]] void refuse_idx(const std::string& what, const std::string& path, std::uint64_t at) {
  throw_input(what, fmt::format("{}: byte {}", path, at), "use the original file, plain or .gz");
}

IdxFile read_idx(const std::string& path) {
  IdxFile file{.path = path, .bytes = read_maybe_gzip(path)};
  if (file.bytes.size() < 8) refuse_idx("expected an idx file of at least 8 bytes", path, 0);
  file.magic = file.word(0);
  if (file.magic != kImages && file.magic != kLabels)
    refuse_idx(fmt::format("the magic number {:#x} is neither that for images ({:#x}) nor that for "
                           "labels ({:#x}) of one byte per value",
                           file.magic, kImages, kLabels),
               path, 0);
  const std::size_t extents = file.magic & 0xff;
  file.data = 4 + 4 * extents;
  if (file.bytes.size() < file.data) refuse_idx("the header is truncated", path, file.bytes.size());
  std::uint64_t expected = 1;
  for (std::size_t i = 0; i < extents; ++i) {
    file.sizes[i] = file.word(4 + 4 * i);
    const bool fits = file.sizes[i] == 0 || expected <= file.bytes.size() / file.sizes[i];
    if (file.sizes[i] == 0 || !fits)
      refuse_idx(fmt::format("{} of size {} do not match a file of {} bytes",
                             extents == 1 ? "labels" : "images", file.sizes[i], file.bytes.size()),
                 path, 4 + 4 * i);
    expected *= file.sizes[i];
  }
  if (file.bytes.size() - file.data != expected)
    refuse_idx(fmt::format("the header specifies {} bytes of data, but the file has {}", expected,
                           file.bytes.size() - file.data),
               path, file.data);
  return file;
}

void append_pair(const IdxFile& images, const IdxFile& labels, ImagesInMemory& store) {
  if (images.sizes[0] != labels.sizes[0])
    refuse_idx(fmt::format("got {} labels for the {} images in {}", labels.sizes[0],
                           images.sizes[0], images.path),
               labels.path, 4);
  const ImageShape own{1, static_cast<std::int64_t>(images.sizes[1]),
                       static_cast<std::int64_t>(images.sizes[2])};
  if (store.labels.empty()) store.size = own;
  if (store.size != own)
    refuse_idx(fmt::format("got images of {} x {} after images of {} x {}", own.height, own.width,
                           store.size.height, store.size.width),
               images.path, 8);
  store.pixels.insert(store.pixels.end(),
                      images.bytes.begin() + static_cast<std::ptrdiff_t>(images.data),
                      images.bytes.end());
  for (std::size_t at = labels.data; at < labels.bytes.size(); ++at)
    store.labels.push_back(static_cast<unsigned char>(labels.bytes[at]));
}

std::unique_ptr<Dataset> make_mnist(const DataOptions& options) {
  SplitFiles files = split_files(options);
  auto store = std::make_unique<ImagesInMemory>();
  std::array<std::uint64_t, 3> counts{};
  for (std::size_t split = 0; split < 3; ++split) {
    std::vector<IdxFile> images, labels;
    for (const std::string& path : files.of[split]) {
      IdxFile file = read_idx(path);
      (file.magic == kImages ? images : labels).push_back(std::move(file));
    }
    if (images.size() != labels.size())
      throw_input(
          fmt::format("got {} image files and {} label files", images.size(), labels.size()),
          split == 0 ? "data.files" : fmt::format("data.{}_files", kSplitNames[split]),
          "use one label file (...-labels-idx1-ubyte) per image file "
          "(...-images-idx3-ubyte), in the same order");
    const std::size_t before = store->labels.size();
    for (std::size_t i = 0; i < images.size(); ++i) append_pair(images[i], labels[i], *store);
    counts[split] = store->labels.size() - before;
  }
  ImageSet set{.corpus = files.corpus, .counts = counts};
  const int largest = store->labels.empty() ? 0 : *std::ranges::max_element(store->labels);
  for (int label = 0; label < std::max(kLeastClasses, largest + 1); ++label)
    set.classes.push_back(std::to_string(label));
  set.store = std::move(store);
  return image_dataset(options, std::move(set));
}

}  // namespace

DatasetFormat mnist() {
  return image_format(make_mnist);
}

}  // namespace concertina::dataset_makers
