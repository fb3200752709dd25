// Learns the merges of a byte-level BPE from text (Sennrich et al., 2016, algorithm 1): the most
// frequent pair of adjacent tokens repeatedly becomes a token, until the vocabulary is full.
// Invariant: merges are identical to those of Hugging Face's BpeTrainer; of equally frequent pairs,
// the one with smaller ids comes first.
//
// Cost: words are counted once, at tokenizer speed. Each merge then visits the words that contain
// its pair and updates a heap of pairs, so the cost depends on the number of distinct words, not on
// the size of the text.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "io/tokenizers/characters/word_pattern.h"

namespace concertina {

/// Distinct words and their counts.
using WordCounts = std::unordered_map<std::string, std::int64_t>;

/// Adds the words of one text, with the pattern's prefix space, if any. Throws Error{bad_input} if
/// it is not UTF-8.
void count_words(const WordPattern& pattern, std::string_view text, WordCounts& counts);

/// Calls count_words() for each line including its line break, as `tokenizers` reads files.
void count_lines(const WordPattern& pattern, std::string_view text, WordCounts& counts);

struct LearnedPairs {
  std::vector<std::string> tokens;  // by id, as bytes: special tokens, the 256 bytes, merged tokens
  std::size_t special = 0;          // number of special tokens
  std::vector<std::pair<std::int32_t, std::int32_t>> merges;  // ids, by rank
};

/// `vocabulary` is the total number of tokens; there are fewer if no pairs are left.
LearnedPairs learn_pairs(const WordCounts& counts, std::int64_t vocabulary,
                         const std::vector<std::string>& special);

/// Returns a tokenizer.json as `tokenizers` writes it. A prefix space requires GPT-2's pattern.
std::string description_of(const LearnedPairs& learned, const WordPattern& pattern);

}  // namespace concertina
