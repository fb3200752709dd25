// GPT-2's own two files of a byte-level BPE: vocab.json and merges.txt.
#include <algorithm>

#include "core/error.h"
#include "io/sha256.h"
#include "io/strict_json.h"
#include "io/tokenizers/decoders.h"
#include "io/tokenizers/json_rules.h"
#include "io/tokenizers/pipeline.h"
#include "io/tokenizers/pre_tokenizers.h"
#include "io/tokenizers/tokenizer_files.h"
#include "io/tokenizers/word_models.h"

namespace concertina::tokenizer_kinds {
namespace {

void read_merge_lines(const std::string& text, BytePairTable& table, const std::string& path) {
  std::size_t line_number = 0;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string_view line(text.data() + begin, end - begin);
    begin = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (line_number++ == 0 && line.starts_with("#version"))) continue;
    add_merge_line(line, table, path);
  }
}

/// <|endoftext|>, where the vocabulary has it, is an added token. There is a prefix space if
/// tokenizer_config.json beside them, whose path is `rules`, says so.
std::unique_ptr<Tokenizer> from_pair(const std::string& vocab_path, const std::string& merges_path,
                                     const std::string& rules) {
  const std::string vocab_text = read_tokenizer_file(vocab_path);
  const std::string merges_text = read_tokenizer_file(merges_path);
  const nlohmann::json vocab = parse_strict_object(vocab_text, vocab_path);
  constexpr const char* kEnd = "<|endoftext|>";
  TokenNames names = read_vocabulary(vocab, vocab_path);
  TokenizerStages stages;
  BytePairTable table;
  read_byte_tokens(names, stages.added, table, vocab_path);
  if (vocab.contains(kEnd))
    stages.added.add({.content = kEnd, .id = vocab[kEnd].get<std::int32_t>()});
  read_merge_lines(merges_text, table, merges_path);
  const bool prefix_space =
      !rules.empty() &&
      flag_of(parse_strict_object(read_tokenizer_file(rules), rules), "add_prefix_space", rules);
  stages.words.bytes = true;
  stages.words.steps.push_back(byte_words({WordPattern::gpt2(), vocab_path, prefix_space}));
  stages.model = byte_pair_model(table, std::move(names), vocab_path);
  stages.decoders.push_back(byte_decoder());
  stages.fingerprint = sha256_hex(sha256_hex(vocab_text) + sha256_hex(merges_text));
  if (prefix_space) stages.fingerprint = sha256_hex(stages.fingerprint + " prefix space");
  return make_pipeline(std::move(stages));
}

std::unique_ptr<Tokenizer> open_bpe(const TokenizerFiles& files) {
  if (files.description() != nullptr) return nullptr;
  const std::string vocab = files.file("vocab.json"), merges = files.companion("merges.txt");
  if (vocab.empty()) return nullptr;
  if (merges.empty())
    throw_input("there is a vocab.json, but no merges.txt beside it", vocab,
                "both files of the tokenizer, or its tokenizer.json");
  return from_pair(vocab, merges, files.companion("tokenizer_config.json"));
}

}  // namespace

TokenizerKind bpe() {
  return {.open = open_bpe, .files = "vocab.json with merges.txt"};
}

}  // namespace concertina::tokenizer_kinds
