// Byte pair encoding of words (Sennrich et al., 2016; on bytes as in GPT-2).
// Invariant: encode() merges the pair of lowest rank first, of equal ones the leftmost, until none
// is left.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

namespace concertina {

/// The tables of a model of byte pairs; tokens and merges are bytes, not their printable forms.
struct BytePairTable {
  std::vector<std::pair<std::string, std::int32_t>> tokens;
  std::vector<std::pair<std::string, std::string>> merges;  // by rank
  bool whole_words = false;  // a word that is a token is one, whatever the merges say
};

/// The bytes that the printable characters of GPT-2's byte alphabet stand for. False if `token` has
/// a character that is not of it.
bool bytes_of_printable(std::string_view token, std::string& bytes);
std::string printable_of_bytes(std::string_view bytes);

struct WordMemory;

class BytePairs {
 public:
  /// Input errors, with `where`: a byte that is no token; a merge of what are no tokens, or into
  /// what is none; a merge that is there twice.
  BytePairs(const BytePairTable& table, const std::string& where);
  ~BytePairs();
  BytePairs(const BytePairs&) = delete;
  BytePairs& operator=(const BytePairs&) = delete;

  /// A worker's memory of words. Kept from call to call, since a text repeats its words.
  class Encoder {
   public:
    explicit Encoder(const BytePairs& pairs);
    ~Encoder();
    Encoder(const Encoder&) = delete;
    Encoder& operator=(const Encoder&) = delete;
    /// Appends the tokens of `word`, which is not empty.
    void encode(std::string_view word, std::vector<std::int32_t>& tokens);

   private:
    const BytePairs& pairs_;
    std::unique_ptr<WordMemory> memory_;
  };

 private:
  struct Merge {
    std::int32_t rank = 0, token = 0;
  };
  static std::uint64_t key(std::int32_t left, std::int32_t right) {
    return std::uint64_t{static_cast<std::uint32_t>(left)} << 32 |
           static_cast<std::uint32_t>(right);
  }
  void merge(std::string_view word, WordMemory& memory) const;

  std::array<std::int32_t, 256> bytes_{};
  std::unordered_map<std::uint64_t, Merge> merges_;
  std::unordered_map<std::string, std::int32_t> words_;  // where whole words are tokens
  mutable std::mutex mutex_;
  mutable std::vector<std::unique_ptr<WordMemory>> idle_;
};

}  // namespace concertina
