// WordPiece, as of BERT: tokenizer.json, or vocab.txt with a token per line. A word is cut into the
// longest piece that is a token, from its beginning on; pieces after the first begin with "##".
#include <algorithm>
#include <limits>
#include <unordered_map>

#include "core/error.h"
#include "io/sha256.h"
#include "io/strict_json.h"
#include "io/tokenizers/added_tokens.h"
#include "io/tokenizers/bert_text.h"
#include "io/tokenizers/json_rules.h"
#include "io/tokenizers/tokenizer.h"
#include "io/tokenizers/tokenizer_files.h"
#include "io/tokenizers/unicode.h"

namespace concertina::tokenizer_kinds {
namespace {

using PieceJson = nlohmann::json;

constexpr std::string_view kContinued = "##";

struct WordPieceTable {
  std::vector<std::pair<std::string, std::int32_t>> tokens;
  std::string unknown = "[UNK]";
  std::int64_t longest_word = 100;  // characters; a longer one is unknown
  BertText text;
};

class WordPieceTokenizer final : public Tokenizer {
 public:
  WordPieceTokenizer(WordPieceTable table, AddedTokens added, std::string fingerprint,
                     const std::string& where)
      : text_(table.text),
        longest_word_(table.longest_word),
        added_(std::move(added)),
        fingerprint_(std::move(fingerprint)) {
    for (auto& [token, id] : table.tokens) {
      names_.resize(std::max(names_.size(), static_cast<std::size_t>(id) + 1));
      names_[static_cast<std::size_t>(id)] = token;
      ids_.emplace(std::move(token), id);
    }
    const auto unknown = ids_.find(table.unknown);
    if (unknown == ids_.end())
      throw_input(fmt::format("the vocabulary has no '{}', which unknown words are", table.unknown),
                  where, "a vocabulary with it");
    unknown_ = unknown->second;
    for (const auto& [content, id] : added_.all())
      if (names_.resize(std::max(names_.size(), static_cast<std::size_t>(id) + 1));
          names_[static_cast<std::size_t>(id)].empty())
        names_[static_cast<std::size_t>(id)] = content;
  }

  std::int64_t vocabulary() const override { return std::ssize(names_); }
  void encode(std::string_view text, std::vector<std::int32_t>& tokens) const override {
    require_utf8(text);
    added_.split(
        text,
        [&](std::string_view plain) {
          const std::string normalized = text_.normalize(plain);
          for (const std::string_view word : BertText::words(normalized)) encode_word(word, tokens);
        },
        [&](std::int32_t id) { tokens.push_back(id); });
  }
  std::string decode(std::span<const std::int32_t> tokens) const override;
  std::optional<std::int32_t> special(SpecialToken which) const override {
    return added_.special(which);
  }
  std::string fingerprint() const override { return fingerprint_; }
  std::size_t cut(std::string_view text, std::size_t from) const override {
    return added_.any_has('\n') ? text.size() : line_cut(text, from);
  }

 private:
  void encode_word(std::string_view word, std::vector<std::int32_t>& tokens) const;

  BertText text_;
  std::int64_t longest_word_;
  AddedTokens added_;
  std::string fingerprint_;
  std::unordered_map<std::string, std::int32_t> ids_;
  std::vector<std::string> names_;  // by id
  std::int32_t unknown_ = 0;
};

void WordPieceTokenizer::encode_word(std::string_view word,
                                     std::vector<std::int32_t>& tokens) const {
  const auto begins_character = [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  };
  const std::size_t before = tokens.size();
  bool known = std::ranges::count_if(word, begins_character) <= longest_word_;
  std::string piece;
  for (std::size_t begin = 0; known && begin < word.size();) {
    std::size_t end = word.size();
    auto found = ids_.end();
    for (; end > begin; --end) {
      if (end < word.size() && !begins_character(word[end])) continue;
      piece.assign(begin == 0 ? std::string_view{} : kContinued).append(word, begin, end - begin);
      found = ids_.find(piece);
      if (found != ids_.end()) break;
    }
    known = found != ids_.end();
    if (known) tokens.push_back(found->second);
    begin = end;
  }
  if (known) return;
  tokens.resize(before);
  tokens.push_back(unknown_);
}

/// Words with spaces between, and none before the marks that end one: the rule of `tokenizers`.
std::string WordPieceTokenizer::decode(std::span<const std::int32_t> tokens) const {
  constexpr std::pair<std::string_view, std::string_view> kJoined[] = {
      {" .", "."},   {" ?", "?"},     {" !", "!"},    {" ,", ","},
      {" ' ", "'"},  {" n't", "n't"}, {" 'm", "'m"},  {" do not", " don't"},
      {" 's", "'s"}, {" 've", "'ve"}, {" 're", "'re"}};
  std::string text;
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    CONCERTINA_CHECK(tokens[i] >= 0 && tokens[i] < vocabulary(), "token {}", tokens[i]);
    const std::string& name = names_[static_cast<std::size_t>(tokens[i])];
    std::string part = i == 0                         ? name
                       : name.starts_with(kContinued) ? name.substr(kContinued.size())
                                                      : " " + name;
    for (const auto& [from, to] : kJoined)
      for (std::size_t at = part.find(from); at != std::string::npos;
           at = part.find(from, at + to.size()))
        part.replace(at, from.size(), to);
    text += part;
  }
  return text;
}

BertText read_text_rules(const PieceJson& file, const std::string& where) {
  const PieceJson& normalizer = object_of(file, "normalizer", where);
  const PieceJson& words = object_of(file, "pre_tokenizer", where);
  if (type_of(normalizer, where) != "BertNormalizer" || type_of(words, where) != "BertPreTokenizer")
    throw_input(fmt::format("WordPiece with the normalizer '{}' and the pre-tokenizer '{}' is not "
                            "supported",
                            type_of(normalizer, where), type_of(words, where)),
                where, "BertNormalizer and BertPreTokenizer");
  require_only(normalizer, {},
               {"type", "clean_text", "handle_chinese_chars", "strip_accents", "lowercase"}, where);
  BertText text;
  text.clean = flag_of(normalizer, "clean_text", where);
  text.chinese = flag_of(normalizer, "handle_chinese_chars", where);
  text.lowercase = flag_of(normalizer, "lowercase", where);
  const bool says = normalizer.contains("strip_accents") && !normalizer["strip_accents"].is_null();
  text.strip_accents = says ? flag_of(normalizer, "strip_accents", where) : text.lowercase;
  return text;
}

std::unique_ptr<Tokenizer> wordpiece_from_description(const TokenizerFiles& files) {
  const PieceJson& file = *files.description();
  const std::string& where = files.description_path();
  require_no_truncation(file, where);
  const PieceJson& model = object_of(file, "model", where);
  require_only(model, {{"continuing_subword_prefix", kContinued}},
               {"type", "vocab", "unk_token", "max_input_chars_per_word"}, where);
  WordPieceTable table;
  table.text = read_text_rules(file, where);
  const PieceJson& vocab = object_of(model, "vocab", where);
  table.tokens = read_vocabulary(vocab, where);
  if (model.contains("unk_token") && model["unk_token"].is_string())
    table.unknown = model["unk_token"].get<std::string>();
  if (model.contains("max_input_chars_per_word") &&
      model["max_input_chars_per_word"].is_number_unsigned())
    table.longest_word = static_cast<std::int64_t>(std::min<std::uint64_t>(
        model["max_input_chars_per_word"].get<std::uint64_t>(), kMostTokenIds));
  AddedTokens added;
  if (file.contains("added_tokens")) added = AddedTokens(file["added_tokens"], vocab, where);
  if (const std::string* token = added.any_normalized(); token != nullptr)
    throw_input(fmt::format("the added token '{}' has normalized = true, which is not supported",
                            token->substr(0, 60)),
                where, "a tokenizer whose added tokens have normalized = false");
  return std::make_unique<WordPieceTokenizer>(std::move(table), std::move(added),
                                              sha256_hex(read_tokenizer_file(where)), where);
}

/// vocab.txt: line i is the token i. In small letters, as transformers' BertTokenizer has it,
/// unless tokenizer_config.json beside it says do_lower_case = false.
std::unique_ptr<Tokenizer> from_lines(const TokenizerFiles& files, const std::string& path) {
  const std::string text = read_tokenizer_file(path);
  WordPieceTable table;
  AddedTokens added;
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
      if (token == special) added.add(token, id);
    table.tokens.emplace_back(std::move(token), id);
  }
  std::string fingerprint = sha256_hex(text);
  if (const std::string rules = files.companion("tokenizer_config.json"); !rules.empty()) {
    const PieceJson config = parse_strict_object(read_tokenizer_file(rules), rules);
    if (config.contains("do_lower_case"))
      table.text.lowercase = table.text.strip_accents = flag_of(config, "do_lower_case", rules);
  }
  if (!table.text.lowercase) fingerprint = sha256_hex(fingerprint + " cased");
  return std::make_unique<WordPieceTokenizer>(std::move(table), std::move(added),
                                              std::move(fingerprint), path);
}

std::unique_ptr<Tokenizer> open_wordpiece(const TokenizerFiles& files) {
  if (files.model_type() == "WordPiece") return wordpiece_from_description(files);
  if (files.description() != nullptr) return nullptr;
  std::string path = files.file("vocab.txt");
  if (path.empty()) path = files.file_ending(".txt");
  return path.empty() ? nullptr : from_lines(files, path);
}

}  // namespace

TokenizerKind wordpiece() {
  return {.open = open_wordpiece, .files = "tokenizer.json (WordPiece), or vocab.txt"};
}

}  // namespace concertina::tokenizer_kinds
