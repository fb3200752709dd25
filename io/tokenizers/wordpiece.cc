// BERT's own file of WordPiece: vocab.txt, with a token per line.
#include <algorithm>
#include <unordered_map>

#include "core/error.h"
#include "io/sha256.h"
#include "io/strict_json.h"
#include "io/tokenizers/bert_text.h"
#include "io/tokenizers/decoders.h"
#include "io/tokenizers/json_rules.h"
#include "io/tokenizers/pipeline.h"
#include "io/tokenizers/pre_tokenizers.h"
#include "io/tokenizers/tokenizer_files.h"
#include "io/tokenizers/word_models.h"

namespace concertina::tokenizer_kinds {
namespace {

/// vocab.txt: line i is the token i. In small letters, as transformers' BertTokenizer has it,
/// unless tokenizer_config.json beside it says do_lower_case = false.
std::unique_ptr<Tokenizer> from_lines(const TokenizerFiles& files, const std::string& path) {
  const std::string text = read_tokenizer_file(path);
  TokenizerStages stages;
  WordPieceTable table;
  BertText rules;
  std::unordered_map<std::string, std::int32_t> lines;
  for (std::size_t begin = 0; begin < text.size();) {
    const std::size_t end = std::min(text.find('\n', begin), text.size());
    std::string token = text.substr(begin, end - begin);
    begin = end + 1;
    if (token.ends_with('\r')) token.pop_back();
    const auto id = static_cast<std::int32_t>(table.tokens.size());
    const auto [other, is_new] = lines.emplace(token, id);
    if (!is_new || token.empty() || id >= kMostTokenIds)
      throw_input(is_new ? token.empty() ? "an empty line is no token" : "too many tokens"
                         : fmt::format("the token '{}' of line {} is there again",
                                       token.substr(0, 60), other->second + 1),
                  fmt::format("{}:{}", path, id + 1), "one token per line, each once");
    for (const char* special : {"[UNK]", "[CLS]", "[SEP]", "[PAD]", "[MASK]"})
      if (token == special) stages.added.add({.content = token, .id = id});
    table.tokens.emplace_back(std::move(token), id);
  }
  if (const std::string beside = files.companion("tokenizer_config.json"); !beside.empty()) {
    const nlohmann::json config = parse_strict_object(read_tokenizer_file(beside), beside);
    if (config.contains("do_lower_case"))
      rules.lowercase = rules.strip_accents = flag_of(config, "do_lower_case", beside);
  }
  stages.fingerprint = sha256_hex(text);
  if (!rules.lowercase) stages.fingerprint = sha256_hex(stages.fingerprint + " cased");
  stages.normalizers.push_back({[rules](std::string_view of) { return rules.normalize(of); }});
  stages.words.steps.push_back(bert_words());
  stages.decoders.push_back(word_piece_decoder(table.prefix, /*cleans=*/true));
  stages.model = word_piece_model(std::move(table), path);
  return make_pipeline(std::move(stages));
}

std::unique_ptr<Tokenizer> open_wordpiece(const TokenizerFiles& files) {
  if (files.description() != nullptr) return nullptr;
  std::string path = files.file("vocab.txt");
  if (path.empty()) path = files.file_ending(".txt");
  return path.empty() ? nullptr : from_lines(files, path);
}

}  // namespace

TokenizerKind wordpiece() {
  return {.open = open_wordpiece, .files = "vocab.txt"};
}

}  // namespace concertina::tokenizer_kinds
