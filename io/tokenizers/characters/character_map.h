// SentencePiece's compiled normalization rules: a table of strings and their replacements
// ("precompiled_charsmap"). Source: github.com/huggingface/spm_precompiled and
// github.com/s-yata/darts-clone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace concertina {

class CharacterMap {
 public:
  /// `encoded` is base64. Throws Error{bad_input} with `where` if it is not a valid table.
  CharacterMap(std::string_view encoded, const std::string& where);

  /// Normalizes like `tokenizers`: replaces a grapheme of fewer than 6 bytes as a whole if it is in
  /// the table; other graphemes, character by character. `text` must be UTF-8.
  std::string apply(std::string_view text) const;

 private:
  std::optional<std::string_view> find(std::string_view text) const;
  bool append(std::string_view part, std::string& result) const;

  std::vector<std::uint32_t> units_;  // of the double array
  std::string strings_;               // zero-terminated strings
};

}  // namespace concertina
