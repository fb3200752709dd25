// data.format = "image-folder": a folder of images (png, jpg, jpeg) per class, as in torchvision's
// ImageFolder, which follows links; or such folders in train/ and, for held-out data, in val/ and
// test/.
#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include "core/error.h"
#include "io/file.h"
#include "io/for_all.h"
#include "io/images/encoded_images.h"
#include "io/tokenizers/characters/unicode.h"

namespace concertina::dataset_makers {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostBytes = std::uint64_t{1} << 30;  // per file
constexpr std::uint64_t kHeaderBytes = 1 << 16;               // most headers are shorter
constexpr const char* kLayout =
    "use ROOT/CLASS/IMAGE.png, .jpg or .jpeg; or ROOT/train/CLASS/..., with optional ROOT/val and "
    "ROOT/test";
/// Image formats that other programs read, which are reported instead of being silently skipped.
constexpr std::string_view kOtherImages[] = {"avif", "bmp", "gif", "heic", "jp2",
                                             "pgm",  "ppm", "tif", "tiff", "webp"};

std::string extension_of(const fs::path& path) {
  std::string extension = path.extension().string();
  if (!extension.empty()) extension.erase(0, 1);
  std::ranges::transform(extension, extension.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return extension;
}

bool is_hidden(const fs::path& path) {
  return path.filename().string().starts_with('.');
}

/// Whether `path` is a readable image. Throws Error{bad_input} for an unsupported image format.
bool is_image(const fs::path& path) {
  const std::string extension = extension_of(path);
  if (is_hidden(path)) return false;
  if (std::ranges::find(kOtherImages, extension) != std::end(kOtherImages))
    throw_input(fmt::format("unsupported image format .{}", extension), path.string(),
                "convert it to PNG or JPEG, or move it elsewhere");
  return codec_of(extension) != nullptr;
}

/// Returns the folders in `root` by name. Throws Error{bad_input} for an image next to them.
std::map<std::string, fs::path> folders_in(const std::string& root, const std::string& key) {
  if (!fs::is_directory(root)) throw_input(fmt::format("'{}' is not a folder", root), key, kLayout);
  std::map<std::string, fs::path> folders;
  for (const fs::directory_entry& entry : fs::directory_iterator(root)) {
    if (entry.is_directory() && !is_hidden(entry.path()))
      folders.emplace(entry.path().filename().string(), entry.path());
    else if (!is_hidden(entry.path()) && !entry.exists())
      throw_input("broken link", entry.path().string(), kLayout);
    else if (is_image(entry.path()))
      throw_input("an image outside of a class folder", entry.path().string(), kLayout);
  }
  if (folders.empty()) throw_input(fmt::format("'{}' has no class folders", root), key, kLayout);
  return folders;
}

std::vector<std::string> images_below(const fs::path& folder) {
  std::vector<std::string> images;
  constexpr auto kFollow = fs::directory_options::follow_directory_symlink;
  for (auto at = fs::recursive_directory_iterator(folder, kFollow); at != fs::end(at); ++at) {
    const fs::path& path = at->path();
    if (is_hidden(path)) {
      at.disable_recursion_pending();
    } else if (!at->is_directory()) {  // throws for a link to a parent folder
      if (!at->is_regular_file())
        throw_input("not a file, a folder, or a link to one", path.string(), kLayout);
      if (is_image(path)) images.push_back(path.string());
    }
  }
  std::ranges::sort(images);
  if (images.empty())
    throw_input("a class without images", folder.string(),
                "add images (.png, .jpg, .jpeg), or remove the folder");
  return images;
}

/// Replaces roots in data.files that contain train/ with that folder; their val/ and test/ are held
/// out unless other keys name held-out files.
DataOptions with_parts(const DataOptions& options) {
  static constexpr std::pair<std::string_view, int> kParts[] = {
      {"train", 0}, {"val", 1}, {"valid", 1}, {"validation", 1}, {"test", 2}};
  std::array<std::vector<std::string>, 3> roots;
  for (const std::string& root : options.files) {
    const std::map<std::string, fs::path> folders = folders_in(root, "data.files");
    const auto part_of = [](const std::string& name) {
      return std::ranges::find(kParts, name, &std::pair<std::string_view, int>::first);
    };
    const bool is_split =
        folders.contains("train") && std::ranges::all_of(folders, [&](const auto& folder) {
          return part_of(folder.first) != std::end(kParts);
        });
    if (!is_split) roots[0].push_back(root);
    for (const auto& [name, path] : folders)
      if (is_split) roots[static_cast<std::size_t>(part_of(name)->second)].push_back(path.string());
  }
  DataOptions parts = options;
  parts.files = roots[0];
  if (options.validation_files.empty()) parts.validation_files = roots[1];
  if (options.test_files.empty() && options.test == 0) parts.test_files = roots[2];
  return parts;
}

class ImagesInFolders final : public EncodedImages {
 public:
  using EncodedImages::EncodedImages;

  /// The classes are the folders of the first roots added, in bytewise order.
  void add_roots(const std::vector<std::string>& roots, const std::string& key) {
    const bool is_first = classes_.empty();
    const std::size_t before = paths_.size();
    std::map<std::string, std::vector<std::string>> images;  // by class
    for (const std::string& root : roots)
      for (const auto& [name, path] : folders_in(root, key)) {
        if (!is_utf8(name))
          throw_input("the class name is not UTF-8", path.string(), "use a name in UTF-8");
        std::vector<std::string>& of_class = images[name];
        std::ranges::move(images_below(path), std::back_inserter(of_class));
      }
    if (is_first)
      for (const auto& [name, paths] : images) classes_.push_back(name);
    for (const auto& [name, paths] : images) {
      const auto found = std::ranges::find(classes_, name);
      if (found == classes_.end())
        throw_input(fmt::format("'{}' is not a class of data.files", name), paths.front(),
                    "use the folder names in data.files");
      add_images(paths, static_cast<std::int32_t>(found - classes_.begin()));
    }
    require_distinct({paths_.begin() + static_cast<std::ptrdiff_t>(before), paths_.end()}, key);
  }

  const std::vector<std::string>& classes() const { return classes_; }
  const std::vector<std::string>& paths() const { return paths_; }
  std::string place(std::uint64_t item) const override { return paths_[item]; }

 private:
  void add_images(const std::vector<std::string>& paths, std::int32_t label) {
    std::vector<EncodedImage> found(paths.size());
    for_all(paths.size(), {}, [&](std::size_t i) { found[i] = look_at(paths[i]); });
    for (std::size_t i = 0; i < paths.size(); ++i) {
      found[i].label = label;
      add(found[i], paths[i]);
      paths_.push_back(paths[i]);
    }
  }

  /// Reads the header and some pages.
  static EncodedImage look_at(const std::string& path) {
    const ImageCodec& codec = *codec_of(extension_of(path));
    require_codec(codec, path);
    const File file(path, File::Mode::read);
    const std::uint64_t size = file.size();
    std::vector<std::byte> buffer;
    const auto bytes_at = [&](std::uint64_t at, std::uint64_t count) {
      buffer.resize(count);
      file.read_at(at, buffer);
      return std::span<const std::byte>(buffer);
    };
    return {.codec = &codec,
            .shape = shape_of(codec, path, size, bytes_at),
            .content = packed_content(size, bytes_at)};
  }

  template <class BytesAt>
  static ImageShape shape_of(const ImageCodec& codec, const std::string& path, std::uint64_t size,
                             const BytesAt& bytes_at) {
    if (size > kHeaderBytes && size <= kMostBytes) try {
        return codec.shape(bytes_at(0, kHeaderBytes), path);
      } catch (const Error&) {  // a long header, or an error that is reported for the whole file
      }
    if (size > kMostBytes)
      throw_input(fmt::format("the image is too large: {} bytes", size), path,
                  fmt::format("use at most {} bytes", kMostBytes));
    return codec.shape(bytes_at(0, size), path);
  }

  std::span<const std::byte> bytes(std::uint64_t item, std::string& buffer) const override {
    buffer = read_file(paths_[item], kMostBytes);
    return std::as_bytes(std::span(buffer));
  }

  std::vector<std::string> classes_;
  std::vector<std::string> paths_;  // paths of the images
};

std::unique_ptr<Dataset> make_image_folder(const DataOptions& options) {
  const DataOptions parts = with_parts(options);
  auto store = std::make_unique<ImagesInFolders>(fit_of(options));
  std::array<std::uint64_t, 3> counts{};
  const std::pair<const char*, const std::vector<std::string>*> roots[] = {
      {"data.files", &parts.files},
      {"data.validation_files", &parts.validation_files},
      {"data.test_files", &parts.test_files}};
  for (std::size_t split = 0; split < counts.size(); ++split) {
    const std::uint64_t before = store->size();
    store->add_roots(*roots[split].second, roots[split].first);
    counts[split] = store->size() - before;
  }
  ImageSet set{
      .classes = store->classes(),
      .corpus = std::make_shared<const Corpus>(store->paths(), "data.files", /*joined=*/true),
      .counts = counts};
  set.store = std::move(store);
  return image_dataset(parts, std::move(set));
}

std::unique_ptr<Dataset> make(const DataOptions& options) {
  try {
    return make_image_folder(options);
  } catch (const fs::filesystem_error& error) {
    throw_input(error.code().message(), error.path1().string(),
                "use a readable folder without links to parent folders");
  }
}

}  // namespace

DatasetFormat image_folder() {
  return image_format(make);
}

}  // namespace concertina::dataset_makers
