#include "io/safetensors_folder.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <nlohmann/json.hpp>
#include <set>

#include "core/error.h"
#include "io/file.h"
#include "io/strict_json.h"

namespace concertina {
namespace {

constexpr std::uint64_t kMostIndex = 100'000'000;
constexpr const char* kSingleName = "model.safetensors";
constexpr const char* kIndexName = "model.safetensors.index.json";

/// Refuses with the tensor's name.
[[noreturn]] void refuse_place(const std::string& name, const std::string& what,
                               const std::string& path, const std::string& fix) {
  throw_input(fmt::format("the tensor '{}' {}", name.substr(0, 100), what), path, fix);
}

/// Whether `name` is model-DDDDD-of-DDDDD.safetensors, with five digits or more each.
bool is_part_name(std::string_view name) {
  const auto takes = [&](std::string_view text) {
    if (!name.starts_with(text)) return false;
    name.remove_prefix(text.size());
    return true;
  };
  const auto takes_number = [&] {
    const std::size_t digits = std::min(name.find_first_not_of("0123456789"), name.size());
    name.remove_prefix(digits);
    return digits >= 5;
  };
  return takes("model-") && takes_number() && takes("-of-") && takes_number() &&
         name == ".safetensors";
}

}  // namespace

SafetensorsFolder::SafetensorsFolder(const std::string& folder) {
  namespace fs = std::filesystem;
  const fs::path single = fs::path(folder) / kSingleName;
  const std::string index_path = (fs::path(folder) / kIndexName).string();
  std::error_code ignored;
  if (fs::exists(single, ignored)) {
    files_.push_back(std::make_unique<SafetensorsFile>(single.string()));
    for (const auto& [name, tensor] : files_[0]->tensors()) places_[name] = files_[0].get();
    return;
  }
  if (!fs::exists(index_path, ignored))
    throw_input("there is no model.safetensors here, nor an index of several", folder,
                "a folder that transformers' save_pretrained() wrote");
  const nlohmann::json index = parse_strict_object(read_file(index_path, kMostIndex), index_path);
  if (!index.contains("weight_map") || !index["weight_map"].is_object())
    throw_input("there is no object 'weight_map'", index_path, "{\"weight_map\": {...}}");
  std::map<std::string, const SafetensorsFile*> opened;
  for (const auto& [name, file] : index["weight_map"].items()) {
    const std::string file_name = file.is_string() ? file.get<std::string>() : "";
    if (file_name.empty() || fs::path(file_name).filename() != fs::path(file_name))
      refuse_place(name, "is in no file of this folder", index_path, "the name of a file");
    const SafetensorsFile*& place = opened[file_name];
    if (place == nullptr) {
      files_.push_back(std::make_unique<SafetensorsFile>((fs::path(folder) / file_name).string()));
      place = files_.back().get();
    }
    if (!place->tensors().contains(name))
      refuse_place(name, fmt::format("is not in {}", file_name), index_path,
                   "the files that belong together");
    places_[name] = place;
  }
  for (const auto& one : files_)
    for (const auto& [name, tensor] : one->tensors())
      if (!places_.contains(name) || places_[name] != one.get())
        refuse_place(name, "is in a file, but not by the index", one->path(),
                     "the files that belong together");
}

std::vector<std::string> SafetensorsFolder::names() const {
  std::vector<std::string> all;
  for (const auto& [name, file] : places_) all.push_back(name);
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

const std::string& SafetensorsFolder::path_of(const std::string& name) const {
  return places_.at(name)->path();
}

SafetensorsFolderWriter::SafetensorsFolderWriter(std::string folder,
                                                 std::vector<StoredTensor> tensors,
                                                 std::uint64_t file_bytes)
    : folder_(std::move(folder)), tensors_(std::move(tensors)), starts_{0} {
  std::uint64_t taken = 0;
  for (std::size_t i = 0; i < tensors_.size(); ++i) {
    const std::uint64_t bytes = tensors_[i].bytes();
    if (taken > 0 && (taken > file_bytes || bytes > file_bytes - taken)) {
      starts_.push_back(i);
      taken = 0;
    }
    taken += bytes;
  }
  for (std::size_t file = 0; file < starts_.size(); ++file)
    std::ranges::sort(tensors_.begin() + static_cast<std::ptrdiff_t>(starts_[file]),
                      tensors_.begin() + static_cast<std::ptrdiff_t>(end_of(file)), {},
                      &StoredTensor::name);
  make_directories(folder_);
  if (files() == 1) return;  // which takes the place of what is there in one step
  for (const char* name : {kIndexName, kSingleName}) remove_tree(path_of(name));
  sync_directory(folder_);
}

SafetensorsFolderWriter::~SafetensorsFolderWriter() {
  if (finished_) return;
  std::error_code ignored;
  file_.reset();
  for (std::size_t file = 0; files() > 1 && file < opened_; ++file)
    std::filesystem::remove(path_of(name_of(file)), ignored);
}

std::string SafetensorsFolderWriter::name_of(std::size_t file) const {
  if (files() == 1) return kSingleName;
  return fmt::format("model-{:05}-of-{:05}.safetensors", file + 1, files());
}

std::string SafetensorsFolderWriter::path_of(const std::string& name) const {
  return (std::filesystem::path(folder_) / name).string();
}

std::size_t SafetensorsFolderWriter::end_of(std::size_t file) const {
  return file + 1 < starts_.size() ? starts_[file + 1] : tensors_.size();
}

void SafetensorsFolderWriter::open_next() {
  const auto at = [&](std::size_t i) { return tensors_.begin() + static_cast<std::ptrdiff_t>(i); };
  file_ = std::make_unique<SafetensorsWriter>(
      path_of(name_of(opened_)), std::vector(at(starts_[opened_]), at(end_of(opened_))));
  ++opened_;
}

void SafetensorsFolderWriter::append(std::span<const float> tensor) {
  CONCERTINA_CHECK(next_ < tensors_.size() && tensor.size() == tensors_[next_].elements(),
                   "{} elements as tensor {} of {}", tensor.size(), next_, tensors_.size());
  if (file_ == nullptr) open_next();
  file_->append(tensor);
  if (++next_ < end_of(opened_ - 1)) return;
  file_->finish();
  file_.reset();
}

void SafetensorsFolderWriter::write_index() const {
  nlohmann::json index;
  std::uint64_t bytes = 0, elements = 0;
  for (std::size_t file = 0; file < files(); ++file)
    for (std::size_t i = starts_[file]; i < end_of(file); ++i) {
      bytes += tensors_[i].bytes();
      elements += tensors_[i].elements();
      index["weight_map"][tensors_[i].name] = name_of(file);
    }
  index["metadata"] = {{"total_parameters", elements}, {"total_size", bytes}};
  atomic_replace(path_of(kIndexName), index.dump(2) + "\n");
}

/// Files of models that are none of this one's.
void SafetensorsFolderWriter::remove_others() const {
  std::set<std::string> mine, old;
  for (std::size_t file = 0; file < files(); ++file) mine.insert(name_of(file));
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder_, ignored)) {
    const std::string name = entry.path().filename().string();
    if (is_part_name(name) && !mine.contains(name)) old.insert(name);
  }
  if (files() == 1) old.insert(kIndexName);
  for (const std::string& name : old) remove_tree(path_of(name));
}

void SafetensorsFolderWriter::finish() {
  CONCERTINA_CHECK(next_ == tensors_.size(), "{} of {} tensors", next_, tensors_.size());
  if (tensors_.empty()) {
    open_next();
    file_->finish();
  }
  finished_ = true;
  if (files() > 1) write_index();
  remove_others();
}

}  // namespace concertina
