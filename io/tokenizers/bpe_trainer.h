// Learns the merges of a byte-level BPE from text (Sennrich et al., 2016, algorithm 1): again and
// again the most frequent pair of neighbours becomes a token, until the vocabulary is full.
// Invariant: merges are those of Hugging Face's BpeTrainer; of equally frequent pairs the one of
// smaller ids is first.
//
// Cost: words are counted once, at the tokenizer's rate. A merge then costs the words that have its
// pair, and the logarithm of the pairs: it does not grow with the text, but with its different
// words.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "io/tokenizers/characters/word_pattern.h"

namespace concertina {

/// Different words and how often each is there.
using WordCounts = std::unordered_map<std::string, std::int64_t>;

/// Adds the words of one text: with the pattern's prefix space, if it has one. Input error: it is
/// not UTF-8.
void count_words(const WordPattern& pattern, std::string_view text, WordCounts& counts);

/// As count_words() of each line with its break, which is how `tokenizers` reads a file.
void count_lines(const WordPattern& pattern, std::string_view text, WordCounts& counts);

struct LearnedPairs {
  std::vector<std::string> tokens;  // by id, as bytes; special ones first, then the 256 bytes
  std::size_t special = 0;          // how many are
  std::vector<std::pair<std::int32_t, std::int32_t>> merges;  // ids, by rank
};

/// `vocabulary`: tokens in all; there are fewer where no pair is left that occurs.
LearnedPairs learn_pairs(const WordCounts& counts, std::int64_t vocabulary,
                         const std::vector<std::string>& special);

/// The text of a tokenizer.json, as `tokenizers` writes it. A prefix space is of GPT-2's pattern.
std::string description_of(const LearnedPairs& learned, const WordPattern& pattern);

}  // namespace concertina
