// The files that a user's choice of a tokenizer means.
#pragma once

#include <filesystem>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "io/tokenizers/special_tokens.h"

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
  /// The SentencePiece model: *.model, or as Mistral names its versions, *.model.v3; empty: none.
  std::string sentencepiece() const { return first_file(is_sentencepiece_name); }
  /// BERT's list of tokens: vocab.txt, or without a SentencePiece model any *.txt; empty: none.
  std::string lines() const;
  /// tokenizer.json, under any name that ends in .json but vocab.json, or what other files say in
  /// its form; with the tokens that the files beside it name. Null: none.
  const nlohmann::json* description() const { return description_ ? &*description_ : nullptr; }
  /// The path of what it was read from.
  const std::string& description_path() const { return description_path_; }
  /// The path of a tokenizer.json; empty: none.
  std::string published() const { return is_published_ ? description_path_ : ""; }
  /// Whether the description is that of a tokenizer.json, without a token more.
  bool is_as_published() const { return is_published_ && !more_tokens_; }
  /// SHA-256 of the files of the description, in hexadecimal digits.
  const std::string& fingerprint() const { return fingerprint_; }
  /// What the files beside it say of special tokens.
  const SaidTokens& said() const { return said_; }
  /// Its model.type, which old files leave to what the model has; empty without one.
  std::string model_type() const;
  /// The same choice as if there were no tokenizer.json in the folder.
  TokenizerFiles without_published() const;

  static bool is_sentencepiece_name(const std::string& name);

 private:
  /// The chosen file if its name fits, else the first of such names in the chosen folder.
  std::string first_file(bool (*fits)(const std::string& name)) const;
  void describe_other_files();
  /// Takes what the files beside it say.
  void add_said();

  std::filesystem::path choice_;
  bool is_folder_ = false;
  bool is_published_ = false, more_tokens_ = false;
  std::string description_path_, fingerprint_;
  std::optional<nlohmann::json> description_;
  SaidTokens said_;
};

/// A file of a tokenizer, whole. Input error: larger than 1 GiB.
std::string read_tokenizer_file(const std::string& path);

}  // namespace concertina
