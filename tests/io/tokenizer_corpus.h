// The text on which tokenizers are compared: chunk `i` of a seed is a pure function of both, equal
// to that of tests/golden/tokenizer_corpus.py.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>
#include <vector>

#include "core/text/utf8.h"

namespace concertina::tokenizer_corpus {

/// Returns the pieces of `text` between separators.
inline std::vector<std::string_view> pieces(std::string_view text, char separator = ' ') {
  std::vector<std::string_view> all;
  for (std::size_t at = 0; at != std::string_view::npos;) {
    at = text.find(separator);
    all.push_back(text.substr(0, at));
    if (at != std::string_view::npos) text.remove_prefix(at + 1);
  }
  return all;
}

inline const std::vector<std::string_view> kWords = pieces(
    "the of and a to in is you that it he was for on are as with his they I at be this have "
    "from or one had by word but not what all were we when your can said there use an each "
    "which she do how their if will up other about out many then them these so some her would "
    "make like him into time has look two more write go see number no way could people my than "
    "first water been call who oil its now find long down day did get come made may part DON'T "
    "I'll we've they're he'd it's I'm can't WON'T na\u00EFve \u00DCbermut fa\u00E7ade "
    "\u00E9t\u00E9 \u0130stanbul \u017F");
inline const std::vector<std::string_view> kSpaces =
    pieces(" | | |  |\n|\n\n|\t|\r\n|\u00A0|\u3000|\u2028|\u2003|\v|\f|\u0085|   | \n|\n ", '|');
inline const std::vector<std::string_view> kContractions =
    pieces("'s 't 're 've 'm 'll 'd 'S 'RE 'LL 'x \u2019s '");
inline const std::vector<std::string_view> kSequences = pieces(
    "\U0001F468\u200D\U0001F469\u200D\U0001F467 \U0001F1E9\U0001F1EA \U0001F44D\U0001F3FD "
    "e\u0301 a\u0308\u0323 \u05D1\u05BC\u05B0 \u0E01\u0E33 \u1100\u1161\u11A8 "
    "\u0915\u094D\u0937 \uFB01 \u200B \uFEFF \u2060 <|endoftext|> [MASK] [UNK] ## <s> \u2581 "
    "\u00AD \u180E");
inline constexpr std::uint32_t kRanges[][2] = {
    {0x20, 0x7E},       {0x20, 0x7E},     {0xA1, 0xFF},     {0x100, 0x17F},     {0x386, 0x3CE},
    {0x400, 0x45F},     {0x5D0, 0x5EA},   {0x621, 0x64A},   {0x905, 0x939},     {0xE01, 0xE30},
    {0x3041, 0x3096},   {0x30A1, 0x30FA}, {0x4E00, 0x9FA5}, {0x20000, 0x2A6D6}, {0xAC00, 0xD7A3},
    {0x1F300, 0x1F64F}, {0x300, 0x345},   {0x2010, 0x2027}, {0x2030, 0x205E},   {0x2200, 0x22FF},
    {0x1, 0x1F},        {0x7F, 0xA0},     {0x660, 0x669},   {0x2160, 0x2188},   {0xFF10, 0xFF19},
    {0xE000, 0xE00F}};

/// Steele, Lea and Flood's SplitMix (2014).
class Numbers {
 public:
  explicit Numbers(std::uint64_t state) : state_(state) {}
  std::uint32_t below(std::size_t end) {
    std::uint64_t z = state_ += 0x9E3779B97F4A7C15;
    z = (z ^ z >> 30) * 0xBF58476D1CE4E5B9;
    z = (z ^ z >> 27) * 0x94D049BB133111EB;
    return static_cast<std::uint32_t>((z ^ z >> 31) % end);
  }

 private:
  std::uint64_t state_;
};

inline void add_atom(Numbers& n, std::string& text) {
  const std::uint32_t kind = n.below(10);
  if (kind < 3) {
    if (n.below(2) == 1) text += ' ';
    text += kWords[n.below(kWords.size())];
  } else if (kind == 3) {
    for (std::uint32_t left = 1 + n.below(12); left > 0; --left)
      text += static_cast<char>('a' + n.below(26));
  } else if (kind == 4) {
    const std::string_view space = kSpaces[n.below(kSpaces.size())];
    for (std::uint32_t left = 1 + n.below(3); left > 0; --left) text += space;
  } else if (kind == 5) {
    text += kContractions[n.below(kContractions.size())];
  } else if (kind == 6) {
    for (std::uint32_t left = 1 + n.below(8); left > 0; --left)
      text += static_cast<char>('0' + n.below(10));
  } else if (kind == 7) {
    text += kSequences[n.below(kSequences.size())];
  } else {
    const auto [first, last] = kRanges[n.below(std::size(kRanges))];
    for (std::uint32_t left = 1 + n.below(5); left > 0; --left)
      append_utf8(first + n.below(last - first + 1), text);
  }
}

/// Returns about 2 kB.
inline std::string chunk(std::uint64_t seed, std::uint64_t i) {
  Numbers n(seed * 0x100000001B3 + i);
  std::string text;
  for (int atoms = 0; atoms < 400; ++atoms) add_atom(n, text);
  return text;
}

}  // namespace concertina::tokenizer_corpus
