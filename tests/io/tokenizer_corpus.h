// The text that tokenizers are compared on: chunk `i` of a seed is a pure function of both, the
// same as tests/golden/tokenizer_corpus.py makes it.
#pragma once

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <string>
#include <string_view>

#include "io/tokenizers/characters/unicode.h"

namespace concertina::tokenizer_corpus {

inline constexpr std::string_view kWords[] = {"the",
                                              "of",
                                              "and",
                                              "a",
                                              "to",
                                              "in",
                                              "is",
                                              "you",
                                              "that",
                                              "it",
                                              "he",
                                              "was",
                                              "for",
                                              "on",
                                              "are",
                                              "as",
                                              "with",
                                              "his",
                                              "they",
                                              "I",
                                              "at",
                                              "be",
                                              "this",
                                              "have",
                                              "from",
                                              "or",
                                              "one",
                                              "had",
                                              "by",
                                              "word",
                                              "but",
                                              "not",
                                              "what",
                                              "all",
                                              "were",
                                              "we",
                                              "when",
                                              "your",
                                              "can",
                                              "said",
                                              "there",
                                              "use",
                                              "an",
                                              "each",
                                              "which",
                                              "she",
                                              "do",
                                              "how",
                                              "their",
                                              "if",
                                              "will",
                                              "up",
                                              "other",
                                              "about",
                                              "out",
                                              "many",
                                              "then",
                                              "them",
                                              "these",
                                              "so",
                                              "some",
                                              "her",
                                              "would",
                                              "make",
                                              "like",
                                              "him",
                                              "into",
                                              "time",
                                              "has",
                                              "look",
                                              "two",
                                              "more",
                                              "write",
                                              "go",
                                              "see",
                                              "number",
                                              "no",
                                              "way",
                                              "could",
                                              "people",
                                              "my",
                                              "than",
                                              "first",
                                              "water",
                                              "been",
                                              "call",
                                              "who",
                                              "oil",
                                              "its",
                                              "now",
                                              "find",
                                              "long",
                                              "down",
                                              "day",
                                              "did",
                                              "get",
                                              "come",
                                              "made",
                                              "may",
                                              "part",
                                              "DON'T",
                                              "I'll",
                                              "we've",
                                              "they're",
                                              "he'd",
                                              "it's",
                                              "I'm",
                                              "can't",
                                              "WON'T",
                                              "na\xc3\xafve",
                                              "\xc3\x9c"
                                              "bermut",
                                              "fa\xc3\xa7"
                                              "ade",
                                              "\xc3\xa9t\xc3\xa9",
                                              "\xc4\xb0stanbul",
                                              "\xc5\xbf"};
inline constexpr std::string_view kSpaces[] = {
    " ",    " ",    " ",        "  ",           "\n",           "\n\n",
    "\t",   "\r\n", "\xc2\xa0", "\xe3\x80\x80", "\xe2\x80\xa8", "\xe2\x80\x83",
    "\x0b", "\x0c", "\xc2\x85", "   ",          " \n",          "\n "};
inline constexpr std::string_view kContractions[] = {
    "'s", "'t", "'re", "'ve", "'m", "'ll", "'d", "'S", "'RE", "'LL", "'x", "\xe2\x80\x99s", "'"};
inline constexpr std::string_view kSequences[] = {
    "\xf0\x9f\x91\xa8\xe2\x80\x8d\xf0\x9f\x91\xa9\xe2\x80\x8d\xf0\x9f\x91\xa7",
    "\xf0\x9f\x87\xa9\xf0\x9f\x87\xaa",
    "\xf0\x9f\x91\x8d\xf0\x9f\x8f\xbd",
    "e\xcc\x81",
    "a\xcc\x88\xcc\xa3",
    "\xd7\x91\xd6\xbc\xd6\xb0",
    "\xe0\xb8\x81\xe0\xb8\xb3",
    "\xe1\x84\x80\xe1\x85\xa1\xe1\x86\xa8",
    "\xe0\xa4\x95\xe0\xa5\x8d\xe0\xa4\xb7",
    "\xef\xac\x81",
    "\xe2\x80\x8b",
    "\xef\xbb\xbf",
    "\xe2\x81\xa0",
    "<|endoftext|>",
    "[MASK]",
    "[UNK]",
    "##",
    "<s>",
    "\xe2\x96\x81",
    "\xc2\xad",
    "\xe1\xa0\x8e"};
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
    text += kWords[n.below(std::size(kWords))];
  } else if (kind == 3) {
    for (std::uint32_t left = 1 + n.below(12); left > 0; --left)
      text += static_cast<char>('a' + n.below(26));
  } else if (kind == 4) {
    const std::string_view space = kSpaces[n.below(std::size(kSpaces))];
    for (std::uint32_t left = 1 + n.below(3); left > 0; --left) text += space;
  } else if (kind == 5) {
    text += kContractions[n.below(std::size(kContractions))];
  } else if (kind == 6) {
    for (std::uint32_t left = 1 + n.below(8); left > 0; --left)
      text += static_cast<char>('0' + n.below(10));
  } else if (kind == 7) {
    text += kSequences[n.below(std::size(kSequences))];
  } else {
    const auto [first, last] = kRanges[n.below(std::size(kRanges))];
    for (std::uint32_t left = 1 + n.below(5); left > 0; --left)
      append_utf8(first + n.below(last - first + 1), text);
  }
}

/// About 2 kB.
inline std::string chunk(std::uint64_t seed, std::uint64_t i) {
  Numbers n(seed * 0x100000001B3 + i);
  std::string text;
  for (int atoms = 0; atoms < 400; ++atoms) add_atom(n, text);
  return text;
}

}  // namespace concertina::tokenizer_corpus
