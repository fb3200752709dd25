#include "io/tokenizers/stages.h"

#include <algorithm>
#include <memory>
#include <unordered_map>

#include "core/error.h"
#include "core/registry.h"
#include "io/tokenizers/byte_pairs.h"
#include "io/tokenizers/characters/json_rules.h"
#include "io/tokenizers/unigram.h"

namespace concertina {
namespace {

using ModelJson = nlohmann::json;
using MakeModel = WordModel (*)(const ModelJson& model, const ModelContext& context);

void add_merge(std::string_view left, std::string_view right, BytePairTable& table,
               const std::string& where) {
  auto& [first, second] = table.merges.emplace_back();
  const auto read = [&](std::string_view token, std::string& name) {
    if (table.bytes) return bytes_of_printable(token, name);
    name = token;
    return true;
  };
  if (left.empty() || right.empty() || !read(left, first) || !read(right, second))
    throw_input(fmt::format("the merge {} is not a pair of tokens", table.merges.size()), where,
                "use two tokens separated by a space");
}

/// A merge is "a b" or, since tokenizers 0.20, ["a", "b"].
void read_merges(const ModelJson& model, BytePairTable& table, const std::string& where) {
  for (const ModelJson& merge : list_of(model, "merges", where)) {
    if (merge.is_string()) {
      const std::string_view line = merge.get_ref<const std::string&>();
      const std::size_t space = std::min(line.find(' '), line.size());
      add_merge(line.substr(0, space), line.substr(std::min(space + 1, line.size())), table, where);
    } else if (merge.is_array() && merge.size() == 2 && merge[0].is_string() &&
               merge[1].is_string()) {
      add_merge(merge[0].get_ref<const std::string&>(), merge[1].get_ref<const std::string&>(),
                table, where);
    } else {
      throw_input(fmt::format("the merge {} is not a pair of tokens", table.merges.size() + 1),
                  where, "use \"a b\" or [\"a\", \"b\"]");
    }
  }
}

/// Whether no token contains a '\u2581' after another character, so that no merge crosses it.
bool begins_with_blanks(const TokenNames& names, const AddedTokens& added) {
  constexpr std::string_view kBlank = "\u2581";
  return std::ranges::all_of(names, [&](const auto& token) {
    std::string_view name = token.first;
    while (name.starts_with(kBlank)) name.remove_prefix(kBlank.size());
    return name.find(kBlank) == std::string_view::npos || added.content(token.second) != nullptr;
  });
}

std::string text_or(const ModelJson& model, const char* key, std::string_view default_value,
                    const std::string& where) {
  return model.contains(key) && !model[key].is_null() ? text_of(model, key, where)
                                                      : std::string(default_value);
}

/// Converts tokens from GPT-2's alphabet to bytes. Skips added tokens that are not in this
/// alphabet, and throws Error{bad_input} for any other such token.
void read_byte_tokens(const TokenNames& vocabulary, const AddedTokens& added, BytePairTable& table,
                      const std::string& where) {
  for (const auto& [token, id] : vocabulary) {
    std::string bytes;
    if (bytes_of_printable(token, bytes))
      table.tokens.emplace_back(std::move(bytes), id);
    else if (added.content(id) == nullptr)
      throw_input(
          fmt::format("the token '{}' is not in GPT-2's byte alphabet", token.substr(0, 60)), where,
          "use a byte-level BPE");
  }
}

/// WordPiece as in BERT: from the start of a word, the longest piece that is a token is split off
/// repeatedly; pieces after the first have a prefix.
class WordPieces {
 public:
  /// Words of more than `longest_word` characters are unknown. Throws Error{bad_input} with `where`
  /// if the unknown token is not in the vocabulary.
  WordPieces(const TokenNames& tokens, const std::string& unknown, std::string prefix,
             std::int64_t longest_word, const std::string& where)
      : prefix_(std::move(prefix)),
        longest_word_(longest_word),
        ids_(tokens.begin(), tokens.end()) {
    const auto found = ids_.find(unknown);
    if (found == ids_.end())
      throw_input(fmt::format("the vocabulary lacks '{}', the unknown token", unknown), where,
                  "use a vocabulary with this token");
    unknown_ = found->second;
  }

  /// Appends the tokens of `word`, which must be non-empty UTF-8. Thread-safe.
  void encode(std::string_view word, std::vector<std::int32_t>& tokens) const {
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
        piece.assign(prefix_, 0, begin == 0 ? 0 : prefix_.size()).append(word, begin, end - begin);
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

 private:
  std::string prefix_;
  std::int64_t longest_word_;
  std::unordered_map<std::string, std::int32_t> ids_;
  std::int32_t unknown_ = 0;
};

template <class Model>
WordModel model_of(std::shared_ptr<const Model> model, TokenNames&& names) {
  return {.encode = [model = std::move(model)](
                        std::string_view word,
                        std::vector<std::int32_t>& tokens) { model->encode(word, tokens); },
          .names = std::move(names)};
}

WordModel read_byte_pairs(const ModelJson& model, const ModelContext& context) {
  const std::string& where = context.where;
  require_only(model, {{"dropout", nullptr}, {"continuing_subword_prefix", ""}},
               {"type", "vocab", "merges", "ignore_merges", "unk_token", "fuse_unk",
                "byte_fallback", "end_of_word_suffix"},
               where);
  BytePairTable table;
  table.bytes = context.bytes;
  table.whole_words = flag_of(model, "ignore_merges", where);
  table.byte_fallback = flag_of(model, "byte_fallback", where);
  table.fuse_unknown = flag_of(model, "fuse_unk", where);
  table.unknown = text_or(model, "unk_token", "", where);
  table.end_of_word = text_or(model, "end_of_word_suffix", "", where);
  TokenNames names = read_vocabulary(object_of(model, "vocab", where), where);
  if (table.bytes)
    read_byte_tokens(names, context.added, table, where);
  else
    table.tokens = names;
  read_merges(model, table, where);
  const bool cuts =
      !table.bytes && !table.whole_words && begins_with_blanks(names, context.added) &&
      std::ranges::find(names, "\u2581", &TokenNames::value_type::first) != names.end();
  WordModel made = model_of(std::make_shared<const BytePairs>(table, where), std::move(names));
  made.cuts_at_blanks = cuts;
  return made;
}

WordModel read_word_pieces(const ModelJson& model, const ModelContext& context) {
  const std::string& where = context.where;
  require_only(
      model, {},
      {"type", "vocab", "unk_token", "max_input_chars_per_word", "continuing_subword_prefix"},
      where);
  TokenNames names = read_vocabulary(object_of(model, "vocab", where), where);
  const std::string unknown = text_or(model, "unk_token", "[UNK]", where),
                    prefix = text_or(model, "continuing_subword_prefix", "##", where);
  std::int64_t longest_word = 100;
  if (model.contains("max_input_chars_per_word") &&
      model["max_input_chars_per_word"].is_number_unsigned())
    longest_word = static_cast<std::int64_t>(std::min<std::uint64_t>(
        model["max_input_chars_per_word"].get<std::uint64_t>(), kMostTokenIds));
  auto pieces = std::make_shared<const WordPieces>(names, unknown, prefix, longest_word, where);
  return model_of(std::move(pieces), std::move(names));
}

WordModel read_unigram(const ModelJson& model, const ModelContext& context) {
  const std::string& where = context.where;
  require_only(model, {}, {"type", "vocab", "unk_id", "byte_fallback"}, where);
  UnigramTable table;
  table.byte_fallback = flag_of(model, "byte_fallback", where);
  TokenNames names;
  for (const ModelJson& piece : list_of(model, "vocab", where)) {
    if (!piece.is_array() || piece.size() != 2 || !piece[0].is_string() || !piece[1].is_number() ||
        std::ssize(names) >= kMostTokenIds)
      throw_input(fmt::format("invalid piece {} in the vocabulary", names.size()), where,
                  "use at most 2^22 entries [\"piece\", score]");
    names.emplace_back(piece[0].get<std::string>(), static_cast<std::int32_t>(names.size()));
    table.pieces.emplace_back(names.back().first, piece[1].get<double>());
  }
  if (model.contains("unk_id") && !model["unk_id"].is_null()) {
    if (!model["unk_id"].is_number_unsigned() ||
        model["unk_id"].get<std::uint64_t>() >= names.size())
      throw_input(fmt::format("invalid unk_id {}", model["unk_id"].dump().substr(0, 60)), where,
                  "use the id of a piece");
    table.unknown = model["unk_id"].get<std::int32_t>();
  }
  return model_of(std::make_shared<const UnigramPieces>(table), std::move(names));
}

constexpr Entry<MakeModel> kWordModels[] = {
    {"BPE", read_byte_pairs}, {"Unigram", read_unigram}, {"WordPiece", read_word_pieces}};

}  // namespace

WordModel read_word_model(const ModelJson& model, const std::string& type,
                          const ModelContext& context) {
  const MakeModel read =
      lookup<MakeModel>(kWordModels, type, "model of a tokenizer", context.where);
  if (context.bytes && type != "BPE")
    throw_input(fmt::format("{} with the pre-tokenizer ByteLevel is not supported", type),
                context.where, "use BPE");
  return read(model, context);
}

}  // namespace concertina
