#include "io/tokenizers/byte_pairs.h"

#include <xxhash.h>

#include <algorithm>
#include <cstring>

#include "core/error.h"
#include "core/utf8.h"
#include "io/tokenizers/unicode.h"

namespace concertina {
namespace {

/// GPT-2's alphabet: printable bytes of Latin-1 are themselves, the others the characters from
/// U+0100 on, in their order.
std::array<std::uint32_t, 256> byte_alphabet() {
  std::array<std::uint32_t, 256> codes{};
  std::uint32_t next = 0x100;
  for (std::uint32_t byte = 0; byte < 256; ++byte) {
    const bool printable =
        (byte > 0x20 && byte < 0x7F) || (byte > 0xA0 && byte < 0x100 && byte != 0xAD);
    codes[byte] = printable ? byte : next++;
  }
  return codes;
}

}  // namespace

bool bytes_of_printable(std::string_view token, std::string& bytes) {
  static const auto codes = [] {
    std::unordered_map<std::uint32_t, char> map;
    const std::array<std::uint32_t, 256> alphabet = byte_alphabet();
    for (std::size_t byte = 0; byte < 256; ++byte) map[alphabet[byte]] = static_cast<char>(byte);
    return map;
  }();
  bytes.clear();
  for (std::size_t at = 0; at < token.size();) {
    const auto code = next_code(token, at);
    const auto found = code ? codes.find(*code) : codes.end();
    if (found == codes.end()) return false;
    bytes += found->second;
  }
  return true;
}

std::string printable_of_bytes(std::string_view bytes) {
  static const std::array<std::uint32_t, 256> alphabet = byte_alphabet();
  std::string text;
  for (const char byte : bytes) append_utf8(alphabet[static_cast<unsigned char>(byte)], text);
  return text;
}

/// Words that were met, each in the place that its hash has: a word that has the same place takes
/// it. With room for merging the others.
struct WordMemory {
  /// A node of the list of tokens that a word is, while pairs are merged.
  struct Symbol {
    std::int32_t token = 0;
    std::int32_t before = -1, after = -1;  // -1: none
  };

  /// A pair that may be merged: the symbols at `left` and after it. It is out of date where they
  /// are not the pair it was made for any more.
  struct Candidate {
    std::int32_t rank = 0, left = 0, merged = 0;
    bool operator<(const Candidate& other) const {  // for a heap with the next one on top
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };

  static constexpr std::size_t kPlaces = std::size_t{1} << 16;
  struct Word {
    std::array<char, 23> bytes{};
    std::uint8_t size = 0;  // 0: none
    std::array<std::int32_t, 9> tokens{};
    std::int32_t count = 0;
  };
  std::vector<Word> words = std::vector<Word>(kPlaces);
  std::vector<Symbol> symbols;
  std::vector<Candidate> heap;
  std::vector<std::int32_t> tokens;  // of the word that was merged last
};

BytePairs::BytePairs(const BytePairTable& table, const std::string& where) {
  std::unordered_map<std::string, std::int32_t> ids;
  for (const auto& [bytes, id] : table.tokens) ids.emplace(bytes, id);
  const auto id_of = [&](const std::string& bytes) {
    const auto found = ids.find(bytes);
    if (found == ids.end())
      throw_input(fmt::format("a merge needs '{}', which is no token", printable_of_bytes(bytes)),
                  where, "merges of tokens into tokens");
    return found->second;
  };
  for (std::size_t byte = 0; byte < 256; ++byte) {
    const auto found = ids.find(std::string(1, static_cast<char>(byte)));
    if (found == ids.end())
      throw_input(fmt::format("the byte 0x{:02x} is no token", byte), where,
                  "a vocabulary with all 256 bytes, so that any text has tokens");
    bytes_[byte] = found->second;
  }
  for (const auto& [left, right] : table.merges) {
    const Merge merge{static_cast<std::int32_t>(merges_.size()), id_of(left + right)};
    if (!merges_.emplace(key(id_of(left), id_of(right)), merge).second)
      throw_input(fmt::format("the merge '{} {}' is there twice", printable_of_bytes(left),
                              printable_of_bytes(right)),
                  where, "each merge once");
  }
  if (table.whole_words) words_ = std::move(ids);
}

BytePairs::~BytePairs() = default;

void BytePairs::merge(std::string_view word, WordMemory& memory) const {
  std::vector<WordMemory::Symbol>& symbols = memory.symbols;
  std::vector<WordMemory::Candidate>& heap = memory.heap;
  const auto size = static_cast<std::int32_t>(word.size());
  symbols.resize(word.size());
  heap.clear();
  const auto add = [&](std::int32_t left) {
    const std::int32_t right = left < 0 ? -1 : symbols[static_cast<std::size_t>(left)].after;
    if (right < 0) return;
    const auto found = merges_.find(key(symbols[static_cast<std::size_t>(left)].token,
                                        symbols[static_cast<std::size_t>(right)].token));
    if (found == merges_.end()) return;
    heap.push_back({found->second.rank, left, found->second.token});
    std::push_heap(heap.begin(), heap.end());
  };
  for (std::int32_t i = 0; i < size; ++i)
    symbols[static_cast<std::size_t>(i)] = {
        bytes_[static_cast<unsigned char>(word[static_cast<std::size_t>(i)])], i - 1,
        i + 1 < size ? i + 1 : -1};
  for (std::int32_t i = 0; i + 1 < size; ++i) add(i);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    const WordMemory::Candidate next = heap.back();
    heap.pop_back();
    WordMemory::Symbol& left = symbols[static_cast<std::size_t>(next.left)];
    if (left.token < 0 || left.after < 0) continue;
    WordMemory::Symbol& right = symbols[static_cast<std::size_t>(left.after)];
    const auto found = merges_.find(key(left.token, right.token));
    if (found == merges_.end() || found->second.rank != next.rank) continue;
    left.token = next.merged;
    right.token = -1;
    left.after = right.after;
    if (left.after >= 0) symbols[static_cast<std::size_t>(left.after)].before = next.left;
    add(left.before);
    add(next.left);
  }
  memory.tokens.clear();
  for (std::int32_t at = 0; at >= 0; at = symbols[static_cast<std::size_t>(at)].after)
    memory.tokens.push_back(symbols[static_cast<std::size_t>(at)].token);
}

BytePairs::Encoder::Encoder(const BytePairs& pairs) : pairs_(pairs) {
  const std::lock_guard lock(pairs_.mutex_);
  if (!pairs_.idle_.empty()) {
    memory_ = std::move(pairs_.idle_.back());
    pairs_.idle_.pop_back();
  } else {
    memory_ = std::make_unique<WordMemory>();
  }
}

BytePairs::Encoder::~Encoder() {
  const std::lock_guard lock(pairs_.mutex_);
  pairs_.idle_.push_back(std::move(memory_));
}

void BytePairs::Encoder::encode(std::string_view word, std::vector<std::int32_t>& tokens) {
  WordMemory& memory = *memory_;
  WordMemory::Word& place =
      memory.words[XXH3_64bits(word.data(), word.size()) % WordMemory::kPlaces];
  if (place.size == word.size() && std::memcmp(place.bytes.data(), word.data(), word.size()) == 0) {
    tokens.insert(tokens.end(), place.tokens.begin(), place.tokens.begin() + place.count);
    return;
  }
  const auto whole =
      pairs_.words_.empty() ? pairs_.words_.end() : pairs_.words_.find(std::string(word));
  if (whole != pairs_.words_.end())
    memory.tokens.assign(1, whole->second);
  else
    pairs_.merge(word, memory);
  tokens.insert(tokens.end(), memory.tokens.begin(), memory.tokens.end());
  if (word.size() > place.bytes.size() || memory.tokens.size() > place.tokens.size()) return;
  place.size = static_cast<std::uint8_t>(word.size());
  std::ranges::copy(word, place.bytes.begin());
  std::ranges::copy(memory.tokens, place.tokens.begin());
  place.count = static_cast<std::int32_t>(memory.tokens.size());
}

}  // namespace concertina
