#include "io/tokenizers/bpe_trainer.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include <queue>
#include <unordered_set>

#include "core/error.h"
#include "io/tokenizers/byte_pairs.h"
#include "io/tokenizers/characters/unicode.h"

namespace concertina {
namespace {

using TokenPair = std::pair<std::int32_t, std::int32_t>;

struct TokenPairHash {
  std::size_t operator()(const TokenPair& pair) const {
    return std::hash<std::uint64_t>()(std::uint64_t{static_cast<std::uint32_t>(pair.first)} << 32 |
                                      static_cast<std::uint32_t>(pair.second));
  }
};

/// A candidate pair: its count at the time of insertion, and the words that contain it.
struct PairPlaces {
  std::int64_t count = 0;
  TokenPair pair;
  std::unordered_set<std::size_t> words;
  bool operator<(const PairPlaces& other) const {  // the heap's top is the next pair
    return count != other.count ? count < other.count : pair > other.pair;
  }
};

class PairLearner {
 public:
  PairLearner(const WordCounts& counts, const std::vector<std::string>& special);
  LearnedPairs learn(std::int64_t vocabulary) &&;

 private:
  struct Word {
    std::vector<std::int32_t> tokens;
    std::int64_t count = 0;
  };
  using Places = std::unordered_map<TokenPair, std::unordered_set<std::size_t>, TokenPairHash>;

  std::int32_t token_of(const std::string& bytes);
  void note(const TokenPair& pair, std::int64_t change, std::size_t word, Places& grown);
  void merge(const TokenPair& pair, std::int32_t token, std::size_t word, Places& grown);
  void push(Places places);

  LearnedPairs learned_;
  std::unordered_map<std::string, std::int32_t> ids_;
  std::vector<Word> words_;
  std::unordered_map<TokenPair, std::int64_t, TokenPairHash> counts_;
  std::priority_queue<PairPlaces> heap_;
};

/// Returns the id of a token, which is created if new.
std::int32_t PairLearner::token_of(const std::string& bytes) {
  const auto [found, is_new] =
      ids_.emplace(bytes, static_cast<std::int32_t>(learned_.tokens.size()));
  if (is_new) learned_.tokens.push_back(bytes);
  return found->second;
}

PairLearner::PairLearner(const WordCounts& counts, const std::vector<std::string>& special) {
  // Special tokens are not in ids_, since they never take part in merges.
  learned_.tokens = special;
  learned_.special = special.size();
  std::vector<std::pair<std::string, std::string>> alphabet;  // printable form, byte
  for (int byte = 0; byte < 256; ++byte) {
    const std::string one(1, static_cast<char>(byte));
    alphabet.emplace_back(printable_of_bytes(one), one);
  }
  std::ranges::sort(alphabet);  // UTF-8 sorts by code point
  for (const auto& [printed, byte] : alphabet) token_of(byte);
  std::vector<std::pair<std::string, std::int64_t>> sorted(counts.begin(), counts.end());
  std::ranges::sort(sorted);
  Places places;
  for (const auto& [bytes, count] : sorted) {
    Word word{.tokens = {}, .count = count};
    for (const char byte : bytes) word.tokens.push_back(ids_.at(std::string(1, byte)));
    for (std::size_t i = 0; i + 1 < word.tokens.size(); ++i) {
      const TokenPair pair{word.tokens[i], word.tokens[i + 1]};
      counts_[pair] += count;
      places[pair].insert(words_.size());
    }
    words_.push_back(std::move(word));
  }
  push(std::move(places));
}

void PairLearner::push(Places places) {
  for (auto& [pair, words] : places)
    if (const std::int64_t count = counts_[pair]; count > 0)
      heap_.push({count, pair, std::move(words)});
}

void PairLearner::note(const TokenPair& pair, std::int64_t change, std::size_t word,
                       Places& grown) {
  counts_[pair] += change;
  if (change > 0) grown[pair].insert(word);
}

/// Replaces the pair in one word, from left to right.
void PairLearner::merge(const TokenPair& pair, std::int32_t token, std::size_t index,
                        Places& grown) {
  Word& word = words_[index];
  std::vector<std::int32_t>& tokens = word.tokens;
  for (std::size_t i = 0; i + 1 < tokens.size(); ++i) {
    if (tokens[i] != pair.first || tokens[i + 1] != pair.second) continue;
    if (i > 0) {
      note({tokens[i - 1], pair.first}, -word.count, index, grown);
      note({tokens[i - 1], token}, word.count, index, grown);
    }
    tokens[i] = token;
    tokens.erase(tokens.begin() + static_cast<std::ptrdiff_t>(i) + 1);
    if (i + 1 < tokens.size()) {
      note({pair.second, tokens[i + 1]}, -word.count, index, grown);
      note({token, tokens[i + 1]}, word.count, index, grown);
    }
  }
}

LearnedPairs PairLearner::learn(std::int64_t vocabulary) && {
  while (std::ssize(learned_.tokens) < vocabulary && !heap_.empty()) {
    PairPlaces top = heap_.top();
    heap_.pop();
    if (const std::int64_t now = counts_[top.pair]; now != top.count) {
      top.count = now;
      if (now > 0) heap_.push(std::move(top));
      continue;
    }
    const auto text = [&](std::int32_t id) {
      return learned_.tokens[static_cast<std::size_t>(id)];
    };
    const std::int32_t token = token_of(text(top.pair.first) + text(top.pair.second));
    learned_.merges.push_back(top.pair);
    Places grown;
    for (const std::size_t word : top.words) merge(top.pair, token, word, grown);
    counts_.erase(top.pair);
    push(std::move(grown));
  }
  return std::move(learned_);
}

}  // namespace

void count_words(const WordPattern& pattern, std::string_view text, WordCounts& counts) {
  require_utf8(text);
  pattern.for_each_word(text, [&](std::string_view word) { ++counts[std::string(word)]; });
}

void count_lines(const WordPattern& pattern, std::string_view text, WordCounts& counts) {
  require_utf8(text);
  while (!text.empty()) {
    const std::size_t end = std::min(text.find('\n'), text.size() - 1) + 1;
    count_words(pattern, text.substr(0, end), counts);
    text.remove_prefix(end);
  }
}

LearnedPairs learn_pairs(const WordCounts& counts, std::int64_t vocabulary,
                         const std::vector<std::string>& special) {
  return PairLearner(counts, special).learn(vocabulary);
}

std::string description_of(const LearnedPairs& learned, const WordPattern& pattern) {
  using OrderedJson = nlohmann::ordered_json;
  OrderedJson added = OrderedJson::array();
  std::string vocab, merges;  // built manually: filling an ordered object is quadratic
  const auto printed = [&](std::int32_t id) {
    const std::string& bytes = learned.tokens[static_cast<std::size_t>(id)];
    return static_cast<std::size_t>(id) < learned.special ? bytes : printable_of_bytes(bytes);
  };
  for (std::int32_t id = 0; id < std::ssize(learned.tokens); ++id) {
    vocab += fmt::format("{}{}:{}", id == 0 ? "" : ",", OrderedJson(printed(id)).dump(), id);
    if (static_cast<std::size_t>(id) < learned.special)
      added.push_back({{"id", id},
                       {"content", printed(id)},
                       {"single_word", false},
                       {"lstrip", false},
                       {"rstrip", false},
                       {"normalized", false},
                       {"special", true}});
  }
  for (const auto& [left, right] : learned.merges)
    merges += fmt::format("{}{}", merges.empty() ? "" : ",",
                          OrderedJson({printed(left), printed(right)}).dump());
  const bool gpt2 = pattern.text() == WordPattern::gpt2();
  // After Split, ByteLevel would add its space to each word.
  CONCERTINA_CHECK(gpt2 || !pattern.prefix_space(), "a prefix space is not supported with {}",
                   pattern.text());
  const auto byte_level = [&](bool cuts) {
    return OrderedJson{{"type", "ByteLevel"},
                       {"add_prefix_space", pattern.prefix_space()},
                       {"trim_offsets", true},
                       {"use_regex", cuts}};
  };
  OrderedJson cutter = byte_level(true);
  if (!gpt2)
    cutter = {{"type", "Sequence"},
              {"pretokenizers",
               {{{"type", "Split"},
                 {"pattern", {{"Regex", pattern.text()}}},
                 {"behavior", "Isolated"},
                 {"invert", false}},
                byte_level(false)}}};
  return fmt::format(
      R"({{"version":"1.0","truncation":null,"padding":null,"added_tokens":{},"normalizer":null,)"
      R"("pre_tokenizer":{},"post_processor":null,"decoder":{},"model":{{"type":"BPE",)"
      R"("dropout":null,"unk_token":null,"continuing_subword_prefix":null,)"
      R"("end_of_word_suffix":null,"fuse_unk":false,"byte_fallback":false,)"
      R"("ignore_merges":false,"vocab":{{{}}},"merges":[{}]}}}})",
      added.dump(), cutter.dump(), byte_level(true).dump(), vocab, merges);
}

}  // namespace concertina
