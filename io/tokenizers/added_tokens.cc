#include "io/tokenizers/added_tokens.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "io/tokenizers/characters/json_rules.h"
#include "io/tokenizers/characters/unicode.h"

namespace concertina {
namespace {

using AddedJson = nlohmann::json;

struct DefaultNames {
  SpecialToken which;
  std::array<std::string_view, 5> names;
};

constexpr DefaultNames kDefaultNames[] = {
    {SpecialToken::unknown, {"[UNK]", "<unk>"}},
    {SpecialToken::begin,
     {"<|begin_of_text|>", "<|startoftext|>", "<s>", "<bos>", "<|endoftext|>"}},
    {SpecialToken::end, {"<|end_of_text|>", "<|endoftext|>", "</s>", "<eos>"}},
    {SpecialToken::classify, {"[CLS]", "<cls>", "<s>"}},
    {SpecialToken::separate, {"[SEP]", "<sep>", "</s>"}},
    {SpecialToken::padding, {"[PAD]", "<pad>", "<|pad|>", "<|finetune_right_pad_id|>"}},
    {SpecialToken::mask, {"[MASK]", "<mask>"}},
};

}  // namespace

AddedTokens::AddedTokens(const AddedJson& list, const KnownTokens& known,
                         const Normalize& normalize, const std::string& where) {
  if (!list.is_array())
    throw_input("added_tokens is not a list", where, "use [{\"id\": 0, ...}, ...]");
  auto next_id = known.count;
  for (const AddedJson& token : list) {
    const bool whole = token.is_object() && token.contains("id") &&
                       token["id"].is_number_integer() && token.contains("content") &&
                       token["content"].is_string();
    if (!whole || token["id"].get<std::int64_t>() < 0 ||
        token["id"].get<std::int64_t>() >= kMostTokenIds ||
        token["content"].get_ref<const std::string&>().empty())
      throw_input("an added token has no content, or no id from 0 to 2^22 - 1", where,
                  "use {\"id\": 0, \"content\": \"<|endoftext|>\", ...}");
    const auto& content = token["content"].get_ref<const std::string&>();
    if (flag_of(token, "single_word", where))
      throw_input(fmt::format("the added token '{}' has single_word = true, which is not supported",
                              content.substr(0, 60)),
                  where, "use a tokenizer whose added tokens have single_word = false");
    const auto id = token["id"].get<std::int32_t>();
    const auto found = known.ids.find(content);
    const std::int64_t given = found != known.ids.end() ? found->second
                               : ids_.contains(content) ? ids_.at(content)
                                                        : next_id;
    if (id != given)
      throw_input(fmt::format("the added token '{}' has the id {}, but Hugging Face's tokenizers "
                              "assigns {}",
                              content.substr(0, 60), id, given),
                  where, "use its id in the vocabulary; new tokens follow in order");
    next_id = std::max<std::int64_t>(next_id, id + 1);
    const bool normalized = flag_of(token, "normalized", where);
    if (normalized && normalize && normalize(content).empty())
      throw_input(fmt::format("normalization removes the added token '{}' completely",
                              content.substr(0, 60)),
                  where, "use another token, or normalized = false");
    add({.content = content,
         .id = id,
         .normalized = normalized,
         .takes_before = flag_of(token, "lstrip", where),
         .takes_after = flag_of(token, "rstrip", where)},
        normalize);
  }
}

void AddedTokens::add(const AddedToken& token, const Normalize& normalize) {
  contents_[token.id] = token.content;
  ids_[token.content] = token.id;
  if (token.takes_before || token.takes_after) takers_.push_back(token);
  Group& group = token.normalized ? normalized_ : raw_;
  std::string text = token.normalized && normalize ? normalize(token.content) : token.content;
  std::vector<Pattern>& same = group.by_first[static_cast<unsigned char>(text[0])];
  if (same.empty()) group.firsts += text[0];
  same.push_back({std::move(text), token});
  std::ranges::stable_sort(same, std::ranges::greater{},
                           [](const Pattern& pattern) { return pattern.text.size(); });
}

AddedTokens::Match AddedTokens::next(const Group& group, std::string_view text, std::size_t begin) {
  for (std::size_t at = text.find_first_of(group.firsts, begin); at != std::string_view::npos;
       at = text.find_first_of(group.firsts, at + 1))
    for (const auto& [pattern, token] : group.by_first[static_cast<unsigned char>(text[at])]) {
      if (!text.substr(at).starts_with(pattern)) continue;
      const std::size_t end = at + pattern.size();
      return {token.takes_before ? std::max(begin, white_space_before(text, at)) : at,
              token.takes_after ? white_space_after(text, end) : end, token.id};
    }
  return {text.size(), text.size(), 0};
}

const std::string* AddedTokens::content(std::int32_t id) const {
  const auto found = contents_.find(id);
  return found == contents_.end() ? nullptr : &found->second;
}

std::optional<std::int32_t> AddedTokens::special(SpecialToken which) const {
  const auto* const default_value = std::ranges::find(kDefaultNames, which, &DefaultNames::which);
  for (const std::string_view name : default_value->names)
    if (const auto found = ids_.find(std::string(name)); !name.empty() && found != ids_.end())
      return found->second;
  return std::nullopt;
}

bool AddedTokens::hinders_cuts(char character) const {
  return std::ranges::any_of(
             ids_,
             [&](const auto& one) { return one.first.find(character) != std::string::npos; }) ||
         std::ranges::any_of(takers_, &AddedToken::normalized);
}

bool AddedTokens::may_be_cut(std::string_view text, std::size_t at) const {
  const std::string_view before = text.substr(0, white_space_before(text, at));
  const std::string_view after = text.substr(white_space_after(text, at));
  return std::ranges::none_of(takers_, [&](const AddedToken& token) {
    return (token.takes_before && after.starts_with(token.content)) ||
           (token.takes_after && before.ends_with(token.content));
  });
}

}  // namespace concertina
