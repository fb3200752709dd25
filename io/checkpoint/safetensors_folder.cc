#include "io/checkpoint/safetensors_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <filesystem>
#include <nlohmann/json.hpp>

#include <regex>
#include <system_error>

#include "core/error.h"
#include "io/file.h"
#include "io/strict_json.h"

namespace concertina {
namespace fs = std::filesystem;
namespace {

constexpr std::uint64_t kMostIndex = 100'000'000;

[[noreturn]] void refuse_entry(const std::string& name, const std::string& what,
                               const std::string& path, const std::string& fix) {
  throw_input(fmt::format("the tensor '{}' {}", name.substr(0, 100), what), path, fix);
}

/// Returns, for each file of at most `most` bytes (0: unlimited), the index after its last tensor.
std::vector<std::size_t> file_ends(const std::vector<StoredTensor>& tensors, std::uint64_t most) {
  std::vector<std::size_t> ends;
  std::uint64_t bytes = 0;
  for (std::size_t i = 0; i < tensors.size(); ++i) {
    if (most > 0 && bytes > 0 && bytes + tensors[i].bytes() > most) {
      ends.push_back(i);
      bytes = 0;
    }
    bytes += tensors[i].bytes();
  }
  ends.push_back(tensors.size());
  return ends;
}

}  // namespace

bool has_safetensors(const std::string& folder) {
  return std::ranges::any_of(std::array{kSafetensors, kSafetensorsIndex}, [&](const char* file) {
    return exists_at(std::filesystem::path(folder) / file);
  });
}

SafetensorsFolder::SafetensorsFolder(const std::string& folder) : folder_(folder) {
  const fs::path single = fs::path(folder) / kSafetensors;
  const std::string index_path = (fs::path(folder) / kSafetensorsIndex).string();
  if (exists_at(single)) {
    files_.push_back(std::make_unique<SafetensorsFile>(single.string()));
    for (const auto& [name, tensor] : files_[0]->tensors()) places_[name] = files_[0].get();
    return;
  }
  for (const char* pickle : {"pytorch_model.bin", "pytorch_model.bin.index.json"})
    if (const fs::path path = fs::path(folder) / pickle; !exists_at(index_path) && exists_at(path))
      throw_input("the weights are a pickle, which can run arbitrary code when loaded",
                  path.string(),
                  fmt::format("convert them to safetensors without executing any code: "
                              "python3 experiments/prepare/weights_import.py {}",
                              folder));
  if (!exists_at(index_path))
    throw_input("found neither model.safetensors nor an index of several files", folder,
                "use a folder written by transformers' save_pretrained()");
  const nlohmann::json index = parse_strict_object(read_file(index_path, kMostIndex), index_path);
  if (!index.contains("weight_map") || !index["weight_map"].is_object())
    throw_input("missing object 'weight_map'", index_path, "{\"weight_map\": {...}}");
  std::map<std::string, const SafetensorsFile*> opened;
  for (const auto& [name, file] : index["weight_map"].items()) {
    const std::string file_name = file.is_string() ? file.get<std::string>() : "";
    if (file_name.empty() || fs::path(file_name).filename() != fs::path(file_name))
      refuse_entry(name, "is not in a file of this folder", index_path, "use a plain file name");
    const SafetensorsFile*& place = opened[file_name];
    if (place == nullptr) {
      if (!is_file(fs::path(folder) / file_name))
        refuse_entry(name, fmt::format("should be in {}, which does not exist", file_name),
                     index_path, "add all files listed in the index");
      files_.push_back(std::make_unique<SafetensorsFile>((fs::path(folder) / file_name).string()));
      place = files_.back().get();
    }
    if (!place->tensors().contains(name))
      refuse_entry(name, fmt::format("is not in {}", file_name), index_path,
                   "use files and an index that belong together");
    places_[name] = place;
  }
  for (const auto& one : files_)
    for (const auto& [name, tensor] : one->tensors())
      if (!places_.contains(name) || places_[name] != one.get())
        refuse_entry(name, "is in a file, but not in the index", one->path(),
                     "use files and an index that belong together");
}

std::vector<std::string> SafetensorsFolder::names() const {
  std::vector<std::string> all;
  for (const auto& [name, file] : places_) all.push_back(name);
  return all;
}

std::vector<std::string> SafetensorsFolder::files() const {
  std::vector<std::string> all;
  for (const auto& file : files_) all.push_back(file->path());
  std::ranges::sort(all);
  return all;
}

const StoredTensor* SafetensorsFolder::find(const std::string& name) const {
  const auto place = places_.find(name);
  return place == places_.end() ? nullptr : &place->second->tensors().at(name);
}

void SafetensorsFolder::read(const std::string& name, std::uint64_t first,
                             std::span<float> out) const {
  places_.at(name)->read(*find(name), first, out);
}

SafetensorsFolderWriter::SafetensorsFolderWriter(const std::string& folder,
                                                 std::vector<StoredTensor> tensors,
                                                 std::uint64_t most)
    : folder_(folder),
      temporary_((fs::path(folder) / ".partial").string()),
      tensors_(std::move(tensors)) {
  std::ranges::sort(tensors_, {}, &StoredTensor::name);
  ends_ = file_ends(tensors_, most);
  make_directories(temporary_);
  const fs::path lock = fs::path(temporary_) / "lock";
  lock_ = FileLock(lock.string(), "this folder", "wait until that export has finished");
  std::vector<fs::path> left;  // by a killed process
  for (const fs::directory_entry& entry : fs::directory_iterator(temporary_))
    if (entry.path().stem() != "lock") left.push_back(entry.path());
  std::error_code ignored;
  for (const fs::path& path : left) fs::remove(path, ignored);
}

SafetensorsFolderWriter::~SafetensorsFolderWriter() {
  file_.reset();
  lock_ = {};
  std::error_code ignored;
  fs::remove_all(temporary_, ignored);
}

std::string SafetensorsFolderWriter::file_name(std::size_t file) const {
  if (ends_.size() == 1) return kSafetensors;
  return fmt::format("model-{:05}-of-{:05}.safetensors", file + 1, ends_.size());
}

void SafetensorsFolderWriter::open_next() {
  if (file_) file_->finish();
  const std::size_t first = opened_ == 0 ? 0 : ends_[opened_ - 1], end = ends_[opened_];
  const std::vector<StoredTensor> own(tensors_.begin() + static_cast<std::ptrdiff_t>(first),
                                      tensors_.begin() + static_cast<std::ptrdiff_t>(end));
  file_.emplace((fs::path(temporary_) / file_name(opened_)).string(), own);
  ++opened_;
}

void SafetensorsFolderWriter::append(std::span<const float> values) {
  if (file_) values = values.subspan(file_->append(values));
  while (!values.empty()) {
    CONCERTINA_CHECK(opened_ < ends_.size(), "more elements than {} expects", folder_);
    open_next();
    values = values.subspan(file_->append(values));
  }
}

/// Formats the index as transformers does.
std::string SafetensorsFolderWriter::index_text() const {
  std::uint64_t bytes = 0, elements = 0;
  nlohmann::json files = nlohmann::json::object();
  std::size_t file = 0;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    if (i == ends_[file]) ++file;
    bytes += tensors_[i].bytes();
    elements += tensors_[i].elements();
    files[tensors_[i].name] = file_name(file);
  }
  const nlohmann::json index{{"metadata", {{"total_parameters", elements}, {"total_size", bytes}}},
                             {"weight_map", files}};
  return index.dump(2) + "\n";
}

/// Removes other tensor files. The index is removed first: without it, its files are not read.
void SafetensorsFolderWriter::remove_others() const {
  static const std::regex kPart("model-[0-9]{5}-of-[0-9]{5}\\.safetensors");
  fs::remove(fs::path(folder_) / kSafetensorsIndex);
  if (ends_.size() > 1) fs::remove(fs::path(folder_) / kSafetensors);
  std::vector<fs::path> parts;
  for (const fs::directory_entry& entry : fs::directory_iterator(folder_))
    if (std::regex_match(entry.path().filename().string(), kPart)) parts.push_back(entry.path());
  for (const fs::path& part : parts) fs::remove(part);
}

void SafetensorsFolderWriter::finish() {
  while (opened_ < ends_.size()) open_next();
  file_->finish();
  file_.reset();
  const auto move_up = [&](std::size_t file) {
    rename_path((fs::path(temporary_) / file_name(file)).string(),
                (fs::path(folder_) / file_name(file)).string());
  };
  try {
    // A single file takes precedence over an index, and atomically replaces an old single file.
    if (ends_.size() == 1) move_up(0);
    remove_others();
  } catch (const fs::filesystem_error& error) {
    throw_failure(error.code().message(), error.path1().string(), "use a writable folder");
  }
  if (ends_.size() > 1) {
    for (std::size_t file = 0; file < ends_.size(); ++file) move_up(file);
    sync_directory(folder_);
    atomic_replace((fs::path(folder_) / kSafetensorsIndex).string(), index_text());
  }
  sync_directory(folder_);
}

}  // namespace concertina
