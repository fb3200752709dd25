// The files that a value of data.tokenizer refers to.
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
  /// `choice` is the value of data.tokenizer, a file or a folder; `where` is that key. Throws
  /// Error{bad_input} if it does not exist or tokenizer.json is damaged.
  TokenizerFiles(const std::string& choice, const std::string& where);

  /// Returns the chosen file or folder.
  std::string choice() const { return choice_.string(); }
  /// Returns the path of the file with this name that was chosen or is in the folder; empty: none.
  std::string file(std::string_view name) const;
  /// Like file(), but also finds a file next to the chosen one.
  std::string companion(std::string_view name) const;
  /// Returns the SentencePiece model: *.model, or *.model.v3 as named by Mistral; empty: none.
  std::string sentencepiece() const { return first_file(is_sentencepiece_name); }
  /// Returns BERT's token list: vocab.txt, or any *.txt if sentencepiece() is empty; empty: none.
  std::string lines() const;
  /// Returns tokenizer.json (any *.json except vocab.json) or the equivalent of other files,
  /// extended with the tokens of files next to it; null: none.
  const nlohmann::json* description() const { return description_ ? &*description_ : nullptr; }
  /// Returns the path of the file that the description was read from.
  const std::string& description_path() const { return description_path_; }
  /// Returns the path of a tokenizer.json; empty: none.
  std::string published() const { return is_published_ ? description_path_ : ""; }
  /// Whether the description is an original tokenizer.json without additional tokens.
  bool is_as_published() const { return is_published_ && !more_tokens_; }
  /// Returns the SHA-256 of the description's files in hexadecimal.
  const std::string& fingerprint() const { return fingerprint_; }
  /// Returns the special tokens in the files next to the description.
  const DeclaredTokens& declared() const { return declared_; }
  /// Returns model.type, which is inferred from the model's keys in old files; empty: none.
  std::string model_type() const;
  /// Returns the same choice, ignoring a tokenizer.json in the folder.
  TokenizerFiles without_published() const;

  static bool is_sentencepiece_name(const std::string& name);

 private:
  /// Returns the chosen file if its name matches, or the first match in the chosen folder.
  std::string first_file(bool (*fits)(const std::string& name)) const;
  void describe_other_files();
  /// Reads the special tokens in the files next to the description.
  void add_declared();

  std::filesystem::path choice_;
  bool is_folder_ = false;
  bool is_published_ = false, more_tokens_ = false;
  std::string description_path_, fingerprint_;
  std::optional<nlohmann::json> description_;
  DeclaredTokens declared_;
};

/// Returns the contents of a tokenizer file. Throws Error{bad_input} if it exceeds 1 GiB.
std::string read_tokenizer_file(const std::string& path);

}  // namespace concertina
