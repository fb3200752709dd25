// Byte-level BPE, as of GPT-2, RoBERTa and Llama 3: tokenizer.json, or vocab.json and merges.txt.
// The text is taken as it is; what tokenizer.json's post-processor would put around it is left to
// the dataset.
#include <limits>
#include <optional>

#include "core/error.h"
#include "io/sha256.h"
#include "io/strict_json.h"
#include "io/tokenizers/added_tokens.h"
#include "io/tokenizers/byte_pairs.h"
#include "io/tokenizers/json_rules.h"
#include "io/tokenizers/tokenizer.h"
#include "io/tokenizers/tokenizer_files.h"
#include "io/tokenizers/unicode.h"
#include "io/tokenizers/word_pattern.h"

namespace concertina::tokenizer_kinds {
namespace {

using BpeJson = nlohmann::json;

class BpeTokenizer final : public Tokenizer {
 public:
  BpeTokenizer(const BytePairTable& table, WordPattern pattern, AddedTokens added,
               std::string fingerprint, const std::string& where)
      : pairs_(table, where),
        pattern_(std::move(pattern)),
        added_(std::move(added)),
        fingerprint_(std::move(fingerprint)) {
    for (const auto& [content, id] : added_.all()) set(id, content);
    for (const auto& [bytes, id] : table.tokens)
      if (added_.content(id) == nullptr) set(id, bytes);
  }

  std::int64_t vocabulary() const override { return std::ssize(texts_); }
  void encode(std::string_view text, std::vector<std::int32_t>& tokens) const override {
    require_utf8(text);
    BytePairs::Encoder encoder(pairs_);
    added_.split(
        text,
        [&](std::string_view plain) {
          pattern_.for_each_word(plain,
                                 [&](std::string_view word) { encoder.encode(word, tokens); });
        },
        [&](std::int32_t id) { tokens.push_back(id); });
  }
  std::string decode(std::span<const std::int32_t> tokens) const override {
    std::string text;
    for (const std::int32_t token : tokens) {
      CONCERTINA_CHECK(token >= 0 && token < vocabulary(), "token {}", token);
      text += texts_[static_cast<std::size_t>(token)];
    }
    return text;
  }
  std::optional<std::int32_t> special(SpecialToken which) const override {
    return added_.special(which);
  }
  std::string fingerprint() const override { return fingerprint_; }
  std::size_t cut(std::string_view text, std::size_t from) const override {
    if (added_.any_has(pattern_.prefix_space() ? ' ' : '\n')) return text.size();
    return pattern_.prefix_space() ? space_cut(text, from) : line_cut(text, from);
  }

 private:
  void set(std::int32_t id, const std::string& text) {
    const auto at = static_cast<std::size_t>(id);
    if (texts_.size() <= at) texts_.resize(at + 1);
    texts_[at] = text;
  }

  BytePairs pairs_;
  WordPattern pattern_;
  AddedTokens added_;
  std::string fingerprint_;
  std::vector<std::string> texts_;  // by id
};

/// Tokens of a "vocab" object, as bytes, but for those that are added ones.
void read_tokens(const std::vector<std::pair<std::string, std::int32_t>>& vocabulary,
                 const AddedTokens& added, BytePairTable& table, const std::string& where) {
  for (const auto& [token, id] : vocabulary) {
    std::string bytes;
    if (bytes_of_printable(token, bytes))
      table.tokens.emplace_back(std::move(bytes), id);
    else if (added.content(id) == nullptr)
      throw_input(fmt::format("the token '{}' is not written in GPT-2's byte alphabet",
                              token.substr(0, 60)),
                  where, "a byte-level BPE");
  }
}

void add_merge(std::string_view left, std::string_view right, BytePairTable& table,
               const std::string& where) {
  auto& [first, second] = table.merges.emplace_back();
  if (left.empty() || right.empty() || !bytes_of_printable(left, first) ||
      !bytes_of_printable(right, second))
    throw_input(fmt::format("the merge {} is no pair of tokens", table.merges.size()), where,
                "two tokens with a space between");
}

void add_merge_line(std::string_view line, BytePairTable& table, const std::string& where) {
  const std::size_t space = line.find(' ');
  add_merge(line.substr(0, space),
            space == std::string_view::npos ? std::string_view{} : line.substr(space + 1), table,
            where);
}

/// A merge is "a b", or since tokenizers 0.20 ["a", "b"].
void read_merges(const BpeJson& model, BytePairTable& table, const std::string& where) {
  const BpeJson& merges = list_of(model, "merges", where);
  for (const BpeJson& merge : merges) {
    if (merge.is_string()) {
      add_merge_line(merge.get_ref<const std::string&>(), table, where);
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
               merge[1].is_string()) {
      add_merge(merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>(),
                table, where);
    } else {
      throw_input(fmt::format("the merge {} is no pair of tokens", table.merges.size() + 1), where,
                  "\"a b\" or [\"a\", \"b\"]");
    }
  }
}

/// The pattern of a pre-tokenizer ByteLevel, or of Split and then ByteLevel.
WordPattern read_pattern(const BpeJson& file, const std::string& where) {
  const BpeJson& outer = object_of(file, "pre_tokenizer", where);
  if (type_of(outer, where) == "ByteLevel") {
    require_only(outer, {{"use_regex", true}}, {"type", "trim_offsets", "add_prefix_space"}, where);
    return {WordPattern::gpt2(), where, flag_of(outer, "add_prefix_space", where)};
  }
  const BpeJson& steps =
      type_of(outer, where) == "Sequence" ? list_of(outer, "pretokenizers", where) : outer;
  if (!steps.is_array() || steps.size() != 2 || type_of(steps[0], where) != "Split" ||
      type_of(steps[1], where) != "ByteLevel")
    throw_input(fmt::format("the pre-tokenizer '{}' is not supported", type_of(outer, where)),
                where, "ByteLevel, or a Sequence of Split and ByteLevel");
  require_only(steps[0], {{"behavior", "Isolated"}, {"invert", false}}, {"type", "pattern"}, where);
  require_only(steps[1], {{"add_prefix_space", false}, {"use_regex", false}},
               {"type", "trim_offsets"}, where);
  const BpeJson& pattern = object_of(steps[0], "pattern", where);
  if (!pattern.contains("Regex") || !pattern["Regex"].is_string())
    throw_input("the pattern of Split is no regular expression", where, "{\"Regex\": \"...\"}");
  return {pattern["Regex"].get_ref<const std::string&>(), where};
}

std::unique_ptr<Tokenizer> bpe_from_description(const TokenizerFiles& files) {
  const BpeJson& file = *files.description();
  const std::string& where = files.description_path();
  require_null(file, "normalizer", where);
  require_no_truncation(file, where);
  const BpeJson& model = object_of(file, "model", where);
  require_only(model,
               {{"dropout", nullptr},
                {"continuing_subword_prefix", ""},
                {"end_of_word_suffix", ""},
                {"byte_fallback", false}},
               {"type", "vocab", "merges", "ignore_merges", "unk_token", "fuse_unk"}, where);
  BytePairTable table;
  table.whole_words = flag_of(model, "ignore_merges", where);
  const BpeJson& vocab = object_of(model, "vocab", where);
  const auto vocabulary = read_vocabulary(vocab, where);
  AddedTokens added;
  if (file.contains("added_tokens")) added = AddedTokens(file["added_tokens"], vocab, where);
  read_tokens(vocabulary, added, table, where);
  read_merges(model, table, where);
  return std::make_unique<BpeTokenizer>(table, read_pattern(file, where), std::move(added),
                                        sha256_hex(read_tokenizer_file(where)), where);
}

/// GPT-2's own two files. <|endoftext|>, where the vocabulary has it, is an added token. There is a
/// prefix space if tokenizer_config.json beside them, whose path is `rules`, says so.
std::unique_ptr<Tokenizer> from_pair(const std::string& vocab_path, const std::string& merges_path,
                                     const std::string& rules) {
  const std::string vocab_text = read_tokenizer_file(vocab_path);
  const std::string merges_text = read_tokenizer_file(merges_path);
  const BpeJson vocab = parse_strict_object(vocab_text, vocab_path);
  constexpr const char* kEnd = "<|endoftext|>";
  AddedTokens added;
  BytePairTable table;
  read_tokens(read_vocabulary(vocab, vocab_path), added, table, vocab_path);
  if (vocab.contains(kEnd)) added.add(kEnd, vocab[kEnd].get<std::int32_t>());
  std::size_t line_number = 0;
  for (std::size_t begin = 0; begin < merges_text.size();) {
    const std::size_t end = std::min(merges_text.find('\n', begin), merges_text.size());
    std::string_view line(merges_text.data() + begin, end - begin);
    begin = end + 1;
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (line.empty() || (line_number++ == 0 && line.starts_with("#version"))) continue;
    add_merge_line(line, table, merges_path);
  }
  const bool prefix_space =
      !rules.empty() &&
      flag_of(parse_strict_object(read_tokenizer_file(rules), rules), "add_prefix_space", rules);
  std::string fingerprint = sha256_hex(sha256_hex(vocab_text) + sha256_hex(merges_text));
  if (prefix_space) fingerprint = sha256_hex(fingerprint + " prefix space");
  return std::make_unique<BpeTokenizer>(table,
                                        WordPattern(WordPattern::gpt2(), vocab_path, prefix_space),
                                        std::move(added), std::move(fingerprint), vocab_path);
}

std::unique_ptr<Tokenizer> open_bpe(const TokenizerFiles& files) {
  if (files.model_type() == "BPE") return bpe_from_description(files);
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
  return {.open = open_bpe,
          .files = "tokenizer.json (byte-level BPE), or vocab.json with merges.txt"};
}

}  // namespace concertina::tokenizer_kinds
