// The files that a user's choice of a tokenizer means.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace concertina {

class TokenizerFiles {
 public:
  /// `choice`: of data.tokenizer, a file or a folder; `where` names that key. Input errors: there
  /// is no such file or folder; a damaged tokenizer.json.
  TokenizerFiles(const std::string& choice, const std::string& where);

  /// The file or folder that was chosen.
  std::string choice() const { return choice_.string(); }
  /// The path of the file of this name: the chosen one, or one in the chosen folder; empty: none.
  std::string file(std::string_view name) const;
  /// Finds what file() does, and a file beside a chosen one too.
  std::string companion(std::string_view name) const;
  /// The chosen file if its name ends so, else the first of such names in the chosen folder.
  std::string file_ending(std::string_view ending) const;
  /// tokenizer.json, under any name that ends in .json but vocab.json; null: none.
  const nlohmann::json* description() const { return description_ ? &*description_ : nullptr; }
  /// Its path.
  const std::string& description_path() const { return description_path_; }
  /// Its model.type, which old files leave to what the model has; empty without one.
  std::string model_type() const;
  /// The same choice as if there were no tokenizer.json in the folder.
  TokenizerFiles without_description() const;

 private:
  std::filesystem::path choice_;
  bool is_folder_ = false;
  std::string description_path_;
  std::optional<nlohmann::json> description_;
};

/// A file of a tokenizer, whole. Input error: larger than 1 GiB.
std::string read_tokenizer_file(const std::string& path);

}  // namespace concertina
