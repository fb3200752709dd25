#include "io/tokenizers/byte_pairs.h"

#include <algorithm>

#include "core/error.h"
#include "core/text/utf8.h"

namespace concertina {
namespace {

/// GPT-2's alphabet: printable bytes of Latin-1 map to themselves, the others to the characters
/// from U+0100 on, in order.
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

/// The linked list of a word's tokens during merging, and the candidate pairs.
struct PairMerging {
  struct Symbol {
    std::int32_t token = 0;
    std::int32_t before = -1, after = -1;  // -1: none
  };

  /// A candidate for merging: the symbols at `left` and after it. It is stale if they have changed
  /// since it was created.
  struct Candidate {
    std::int32_t rank = 0, left = 0, merged = 0;
    bool operator<(const Candidate& other) const {  // the heap's top is the next one
      return rank != other.rank ? rank > other.rank : left > other.left;
    }
  };

  std::vector<std::int32_t> tokens;  // before any merge
  std::vector<Symbol> symbols;
  std::vector<Candidate> heap;
};

BytePairs::BytePairs(const BytePairTable& table, const std::string& where)
    : is_bytes_(table.bytes),
      byte_fallback_(table.byte_fallback),
      fuse_unknown_(table.fuse_unknown),
      whole_words_(table.whole_words),
      end_of_word_(table.end_of_word) {
  for (const auto& [name, id] : table.tokens) ids_.emplace(name, id);
  if (const auto found = ids_.find(table.unknown); found != ids_.end()) unknown_ = found->second;
  read_alphabet(table, where);
  read_merges(table, where);
}

void BytePairs::read_alphabet(const BytePairTable& table, const std::string& where) {
  const auto id_or_none = [&](const std::string& name) {
    const auto found = ids_.find(name);
    return found == ids_.end() ? -1 : found->second;
  };
  bool falls_back = table.byte_fallback;
  for (std::size_t byte = 0; byte < 256; ++byte) {
    fallback_[byte] = id_or_none(fmt::format("<0x{:02X}>", byte));
    falls_back = falls_back && fallback_[byte] >= 0;
    bytes_[byte] = id_or_none(std::string(1, static_cast<char>(byte)));
    // Bytes that never occur, or occur only in characters beyond the third plane.
    const bool rare = byte == 0xC0 || byte == 0xC1 || byte > 0xF0;
    if (table.bytes && bytes_[byte] < 0 && !rare)
      throw_input(fmt::format("the byte 0x{:02x} is not a token", byte), where,
                  "use a vocabulary with all bytes, so that any text can be encoded");
  }
  if (!table.bytes && !falls_back && !unknown_)
    throw_input("characters that are not in the vocabulary would be lost", where,
                "use a known unk_token, or byte_fallback and the tokens <0x00> to <0xFF>");
}

void BytePairs::read_merges(const BytePairTable& table, const std::string& where) {
  const auto shown = [&](const std::string& name) {
    return table.bytes ? printable_of_bytes(name) : name;
  };
  const auto id_of = [&](const std::string& name) {
    const auto found = ids_.find(name);
    if (found == ids_.end())
      throw_input(fmt::format("a merge needs '{}', which is not a token", shown(name)), where,
                  "use merges whose inputs and results are tokens");
    return found->second;
  };
  for (const auto& [left, right] : table.merges) {
    const Merge merge{static_cast<std::int32_t>(merges_.size()), id_of(left + right)};
    if (!merges_.emplace(key(id_of(left), id_of(right)), merge).second)
      throw_input(fmt::format("duplicate merge '{} {}'", shown(left), shown(right)), where,
                  "use each merge once");
  }
}

/// Appends the tokens of a character's bytes; returns false if a byte has no token.
bool BytePairs::fall_back(std::string_view character, std::vector<std::int32_t>& symbols) const {
  const std::size_t before = symbols.size();
  for (const char byte : character) {
    const std::int32_t id = fallback_[static_cast<unsigned char>(byte)];
    if (id < 0) {
      symbols.resize(before);
      return false;
    }
    symbols.push_back(id);
  }
  return true;
}

/// Appends the tokens of the word's bytes or characters. As in `tokenizers`, an unknown token is
/// written when the next known one is reached.
void BytePairs::begin(std::string_view word, std::vector<std::int32_t>& symbols) const {
  bool unknown = false;
  std::string name;
  for (std::size_t at = 0; at < word.size();) {
    const std::size_t here = at;
    if (is_bytes_)
      ++at;
    else
      next_code(word, at);
    name.assign(word, here, at - here);
    if (at == word.size()) name += end_of_word_;
    const auto found = ids_.find(name);
    if (found != ids_.end()) {
      if (unknown) symbols.push_back(*unknown_);
      unknown = false;
      symbols.push_back(found->second);
      continue;
    }
    if (byte_fallback_ && fall_back(is_bytes_ ? printable_of_bytes(name) : name, symbols)) continue;
    if (!unknown_) continue;
    if (unknown && !fuse_unknown_) symbols.push_back(*unknown_);
    unknown = true;
  }
  if (unknown) symbols.push_back(*unknown_);
}

void BytePairs::merge(PairMerging& merging) const {
  std::vector<PairMerging::Symbol>& symbols = merging.symbols;
  std::vector<PairMerging::Candidate>& heap = merging.heap;
  const auto size = static_cast<std::int32_t>(merging.tokens.size());
  symbols.resize(merging.tokens.size());
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
    symbols[static_cast<std::size_t>(i)] = {merging.tokens[static_cast<std::size_t>(i)], i - 1,
                                            i + 1 < size ? i + 1 : -1};
  for (std::int32_t i = 0; i + 1 < size; ++i) add(i);
  while (!heap.empty()) {
    std::pop_heap(heap.begin(), heap.end());
    const PairMerging::Candidate next = heap.back();
    heap.pop_back();
    PairMerging::Symbol& left = symbols[static_cast<std::size_t>(next.left)];
    if (left.token < 0 || left.after < 0) continue;
    PairMerging::Symbol& right = symbols[static_cast<std::size_t>(left.after)];
    const auto found = merges_.find(key(left.token, right.token));
    if (found == merges_.end() || found->second.rank != next.rank) continue;
    left.token = next.merged;
    right.token = -1;
    left.after = right.after;
    if (left.after >= 0) symbols[static_cast<std::size_t>(left.after)].before = next.left;
    add(left.before);
    add(next.left);
  }
}

void BytePairs::encode(std::string_view word, std::vector<std::int32_t>& tokens) const {
  if (whole_words_) {
    const auto whole = ids_.find(std::string(word));
    if (whole != ids_.end()) return tokens.push_back(whole->second);
  }
  thread_local PairMerging merging;
  merging.tokens.clear();
  const bool each_has_one =
      is_bytes_ && end_of_word_.empty() && std::ranges::all_of(word, [&](char byte) {
        const std::int32_t id = bytes_[static_cast<unsigned char>(byte)];
        merging.tokens.push_back(id);
        return id >= 0;
      });
  if (!each_has_one) {
    merging.tokens.clear();
    begin(word, merging.tokens);
  }
  if (merging.tokens.empty()) return;
  merge(merging);
  for (std::int32_t at = 0; at >= 0; at = merging.symbols[static_cast<std::size_t>(at)].after)
    tokens.push_back(merging.symbols[static_cast<std::size_t>(at)].token);
}

}  // namespace concertina
