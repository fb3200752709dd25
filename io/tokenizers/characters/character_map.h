// SentencePiece's rules of normalization as a model has them compiled: a table of strings that
// others take the place of ("precompiled_charsmap").
// Source: github.com/huggingface/spm_precompiled and github.com/s-yata/darts-clone.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace concertina {

class CharacterMap {
 public:
  /// `encoded`: in base64. Input error, with `where`: it is no such table.
  CharacterMap(std::string_view encoded, const std::string& where);

  /// As `tokenizers` does it: grapheme by grapheme if these have less than 6 bytes, else character
  /// by character. `text` is UTF-8.
  std::string apply(std::string_view text) const;

 private:
  std::optional<std::string_view> find(std::string_view text) const;
  bool append(std::string_view part, std::string& result) const;

  std::vector<std::uint32_t> units_;  // of the double array
  std::string strings_;               // each ends with a zero
};

}  // namespace concertina
