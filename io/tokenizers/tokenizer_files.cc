#include "io/tokenizers/tokenizer_files.h"

#include <algorithm>
#include <vector>

#include "core/error.h"
#include "io/file.h"
#include "io/strict_json.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

std::string existing(const fs::path& path) {
  std::error_code ignored;
  return fs::is_regular_file(path, ignored) ? path.string() : "";
}

}  // namespace

TokenizerFiles::TokenizerFiles(const std::string& choice, const std::string& where)
    : choice_(choice) {
  std::error_code ignored;
  is_folder_ = fs::is_directory(choice_, ignored);
  if (!is_folder_ && !fs::exists(choice_, ignored))
    throw_input(fmt::format("there is no file or folder '{}'", choice), where,
                "\"bytes\", or the path of a tokenizer");
  description_path_ = file("tokenizer.json");
  if (!is_folder_ && choice_.extension() == ".json" && choice_.filename() != "vocab.json")
    description_path_ = choice_.string();
  if (!description_path_.empty())
    description_ = parse_strict_object(read_tokenizer_file(description_path_), description_path_);
}

std::string TokenizerFiles::file(std::string_view name) const {
  if (is_folder_) return existing(choice_ / name);
  return choice_.filename() == name ? choice_.string() : "";
}

std::string TokenizerFiles::companion(std::string_view name) const {
  return existing((is_folder_ ? choice_ : choice_.parent_path()) / name);
}

std::string TokenizerFiles::file_ending(std::string_view ending) const {
  if (!is_folder_) return choice_.string().ends_with(ending) ? choice_.string() : "";
  std::vector<std::string> found;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(choice_, ignored))
    if (entry.path().string().ends_with(ending)) found.push_back(existing(entry.path()));
  const auto first = std::ranges::min_element(found);
  return first == found.end() ? "" : *first;
}

std::string TokenizerFiles::model_type() const {
  if (!description_) return "";
  const auto model = description_->find("model");
  if (model == description_->end() || !model->is_object()) return "";
  const auto type = model->find("type");
  if (type != model->end() && type->is_string()) return type->get<std::string>();
  return model->contains("merges")                     ? "BPE"
         : model->contains("max_input_chars_per_word") ? "WordPiece"
         : model->contains("unk_id")                   ? "Unigram"
                                                       : "";
}

TokenizerFiles TokenizerFiles::without_description() const {
  TokenizerFiles files = *this;
  files.description_.reset();
  files.description_path_.clear();
  return files;
}

std::string read_tokenizer_file(const std::string& path) {
  return read_file(path, std::uint64_t{1} << 30);
}

}  // namespace concertina
