// Byte pair encoding of words (Sennrich et al., 2016): on bytes as in GPT-2, or on characters as in
// Llama 2. Invariant: encode() merges the pair with the lowest rank first (the leftmost if equal),
// until none is left.
#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace concertina {

/// The tables of a byte-pair model. If words are bytes, tokens and merges are bytes, too, not their
/// printable forms.
struct BytePairTable {
  std::vector<std::pair<std::string, std::int32_t>> tokens;
  std::vector<std::pair<std::string, std::string>> merges;  // by rank
  bool bytes = true;                                        // words are bytes; otherwise characters
  bool whole_words = false;    // whether a word that is a token is never split
  bool byte_fallback = false;  // encode unknown characters as tokens <0x00> ... of their bytes
  std::string unknown;         // otherwise encode them as this token; empty: none
  bool fuse_unknown = false;   // merge consecutive unknown tokens
  std::string end_of_word;     // suffix of the name of the last character
};

/// Converts printable characters of GPT-2's byte alphabet to bytes. Returns false if `token`
/// contains any other character.
bool bytes_of_printable(std::string_view token, std::string& bytes);
std::string printable_of_bytes(std::string_view bytes);

struct PairMerging;

class BytePairs {
 public:
  /// Throws Error{bad_input} with `where` if a byte is not a token (except rarely used ones, which
  /// are skipped as in `tokenizers`), characters would be lost, a merge has an unknown token as its
  /// input or result, or a merge is duplicated.
  BytePairs(const BytePairTable& table, const std::string& where);

  /// Appends the tokens of `word`, which must not be empty. Thread-safe.
  void encode(std::string_view word, std::vector<std::int32_t>& tokens) const;

 private:
  struct Merge {
    std::int32_t rank = 0, token = 0;
  };
  static std::uint64_t key(std::int32_t left, std::int32_t right) {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 |
           static_cast<std::uint32_t>(right);
  }
  void read_alphabet(const BytePairTable& table, const std::string& where);
  void read_merges(const BytePairTable& table, const std::string& where);
  void begin(std::string_view word, std::vector<std::int32_t>& symbols) const;
  bool fall_back(std::string_view character, std::vector<std::int32_t>& symbols) const;
  void merge(PairMerging& merging) const;

  std::array<std::int32_t, 256> bytes_{};     // for words of bytes; -1: none
  std::array<std::int32_t, 256> fallback_{};  // -1: none
  bool is_bytes_, byte_fallback_, fuse_unknown_, whole_words_;
  std::optional<std::int32_t> unknown_;
  std::string end_of_word_;
  std::unordered_map<std::uint64_t, Merge> merges_;
  std::unordered_map<std::string, std::int32_t> ids_;
};

}  // namespace concertina
