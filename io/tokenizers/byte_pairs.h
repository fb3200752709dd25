// Byte pair encoding of words (Sennrich et al., 2016): on bytes as in GPT-2, or on characters as in
// Llama 2.
// Invariant: encode() merges the pair of lowest rank first, of equal ones the leftmost, until none
// is left.
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

/// The tables of a model of byte pairs; where words are bytes, tokens and merges are bytes, not
/// their printable forms.
struct BytePairTable {
  std::vector<std::pair<std::string, std::int32_t>> tokens;
  std::vector<std::pair<std::string, std::string>> merges;  // by rank
  bool bytes = true;                                        // words are bytes; else characters
  bool whole_words = false;    // a word that is a token is one, whatever the merges say
  bool byte_fallback = false;  // a character that is no token is the tokens <0x00> ... of its bytes
  std::string unknown;         // else it is this token; empty: none
  bool fuse_unknown = false;   // several of these in a row are one
  std::string end_of_word;     // what the name of the last character ends with
};

/// The bytes that the printable characters of GPT-2's byte alphabet stand for. False if `token` has
/// a character that is not of it.
bool bytes_of_printable(std::string_view token, std::string& bytes);
std::string printable_of_bytes(std::string_view bytes);

struct PairMerging;

class BytePairs {
 public:
  /// Input errors, with `where`: a byte that is no token (but those of characters that are rarely
  /// used, which are left out as `tokenizers` does); characters that would be left out; a merge of
  /// what are no tokens, or into what is none; a merge that is there twice.
  BytePairs(const BytePairTable& table, const std::string& where);

  /// Appends the tokens of `word`, which is not empty. For several threads at once.
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

  std::array<std::int32_t, 256> bytes_{};     // of words of bytes; -1: none
  std::array<std::int32_t, 256> fallback_{};  // -1: none
  bool is_bytes_, byte_fallback_, fuse_unknown_, whole_words_;
  std::optional<std::int32_t> unknown_;
  std::string end_of_word_;
  std::unordered_map<std::uint64_t, Merge> merges_;
  std::unordered_map<std::string, std::int32_t> ids_;
};

}  // namespace concertina
