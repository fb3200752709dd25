#include "io/tokenizers/tokenizer_files.h"

#include <algorithm>
#include <regex>
#include <vector>

#include "core/error.h"
#include "io/file.h"
#include "io/sha256.h"
#include "io/strict_json.h"
#include "io/tokenizers/characters/json_rules.h"
#include "io/tokenizers/vocabulary_files.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

std::string existing(const fs::path& path) {
  return is_file(path) ? path.string() : "";
}

}  // namespace

TokenizerFiles::TokenizerFiles(const std::string& choice, const std::string& where)
    : choice_(choice) {
  is_folder_ = is_folder(choice_);
  if (!is_folder_ && !exists_at(choice_))
    throw_input(fmt::format("no such file or folder: '{}'", choice), where,
                "use \"bytes\", or the path of a tokenizer");
  description_path_ = file("tokenizer.json");
  if (!is_folder_ && choice_.extension() == ".json" && choice_.filename() != "vocab.json")
    description_path_ = choice_.string();
  is_published_ = !description_path_.empty();
  if (is_published_) {
    const std::string text = read_tokenizer_file(description_path_);
    description_ = parse_strict_object(text, description_path_);
    fingerprint_ = sha256_hex(text);
  } else {
    describe_other_files();
  }
  add_declared();
}

void TokenizerFiles::describe_other_files() {
  const std::string vocab = file("vocab.json"), merges = companion("merges.txt"), list = lines();
  if (!vocab.empty() && merges.empty())
    throw_input("found vocab.json, but no merges.txt next to it", vocab,
                "use both files of the tokenizer, or its tokenizer.json");
  description_path_ = vocab.empty() ? list : vocab;
  if (description_path_.empty()) return;
  const std::string path = companion("tokenizer_config.json");
  const nlohmann::json rules = path.empty() ? nlohmann::json::object()
                                            : parse_strict_object(read_tokenizer_file(path), path);
  if (!vocab.empty()) {
    const std::string text = read_tokenizer_file(vocab), pairs = read_tokenizer_file(merges);
    const bool prefix_space = flag_of(rules, "add_prefix_space", path);
    description_ = description_of_pair(text, pairs, prefix_space, vocab);
    fingerprint_ = sha256_hex(sha256_hex(text) + sha256_hex(pairs));
    if (prefix_space) fingerprint_ = sha256_hex(fingerprint_ + " prefix space");
    return;
  }
  const std::string text = read_tokenizer_file(list);
  const bool lowercase = !rules.contains("do_lower_case") || flag_of(rules, "do_lower_case", path);
  description_ = description_of_lines(text, lowercase, list);
  fingerprint_ = sha256_hex(text);
  if (!lowercase) fingerprint_ = sha256_hex(fingerprint_ + " cased");
}

void TokenizerFiles::add_declared() {
  const CompanionFile read_companion = [this](const char* name) {
    const std::string path = companion(name);
    return std::pair(path.empty() ? "" : read_tokenizer_file(path), path);
  };
  const nlohmann::json settings = merged_settings(read_companion);
  declared_ = declared_tokens(settings, read_companion);
  if (!description_) return;
  const std::size_t before =
      description_->contains("added_tokens") ? (*description_)["added_tokens"].size() : 0;
  more_tokens_ = add_declared_tokens(settings, read_companion, *description_);
  if (!more_tokens_) return;
  for (std::size_t i = before; i < (*description_)["added_tokens"].size(); ++i)
    fingerprint_ = sha256_hex(fingerprint_ + (*description_)["added_tokens"][i].dump());
}

std::string TokenizerFiles::file(std::string_view name) const {
  if (is_folder_) return existing(choice_ / name);
  return choice_.filename() == name ? choice_.string() : "";
}

std::string TokenizerFiles::companion(std::string_view name) const {
  return existing((is_folder_ ? choice_ : choice_.parent_path()) / name);
}

bool TokenizerFiles::is_sentencepiece_name(const std::string& name) {
  static const std::regex kName(R"(.*\.model(\.v[0-9]+)?)");
  return std::regex_match(name, kName);
}

std::string TokenizerFiles::lines() const {
  const std::string vocab = file("vocab.txt");
  if (!vocab.empty() || !sentencepiece().empty()) return vocab;
  return first_file([](const std::string& name) { return name.ends_with(".txt"); });
}

std::string TokenizerFiles::first_file(bool (*fits)(const std::string& name)) const {
  if (!is_folder_) return fits(choice_.filename().string()) ? choice_.string() : "";
  std::vector<std::string> found;
  std::error_code ignored;
  for (const fs::directory_entry& entry : fs::directory_iterator(choice_, ignored))
    if (fits(entry.path().filename().string())) found.push_back(existing(entry.path()));
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

TokenizerFiles TokenizerFiles::without_published() const {
  TokenizerFiles files = *this;
  files.description_.reset();
  files.description_path_.clear();
  files.is_published_ = files.more_tokens_ = false;
  files.describe_other_files();
  files.add_declared();
  return files;
}

std::string read_tokenizer_file(const std::string& path) {
  return read_file(path, std::uint64_t{1} << 30);
}

}  // namespace concertina
