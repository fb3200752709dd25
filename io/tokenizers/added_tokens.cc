#include "io/tokenizers/added_tokens.h"

#include <algorithm>
#include <array>

#include "core/error.h"
#include "io/tokenizers/json_rules.h"

namespace concertina {
namespace {

using AddedJson = nlohmann::json;

struct UsualNames {
  SpecialToken which;
  std::array<std::string_view, 4> names;
};

constexpr UsualNames kUsualNames[] = {
    {SpecialToken::unknown, {"[UNK]", "<unk>"}},
    {SpecialToken::begin, {"<|begin_of_text|>", "<|startoftext|>", "<s>", "<|endoftext|>"}},
    {SpecialToken::end, {"<|end_of_text|>", "<|endoftext|>", "</s>"}},
    {SpecialToken::classify, {"[CLS]", "<cls>", "<s>"}},
    {SpecialToken::separate, {"[SEP]", "<sep>", "</s>"}},
    {SpecialToken::padding, {"[PAD]", "<pad>", "<|pad|>", "<|finetune_right_pad_id|>"}},
    {SpecialToken::mask, {"[MASK]", "<mask>"}},
};

bool flag(const AddedJson& token, const char* name) {
  const auto found = token.find(name);
  return found != token.end() && found->is_boolean() && found->get<bool>();
}

}  // namespace

AddedTokens::AddedTokens(const AddedJson& list, const AddedJson& vocab, const std::string& where) {
  if (!list.is_array()) throw_input("added_tokens is no list", where, "[{\"id\": 0, ...}, ...]");
  auto next_id = static_cast<std::int64_t>(vocab.size());
  for (const AddedJson& token : list) {
    const bool whole = token.is_object() && token.contains("id") &&
                       token["id"].is_number_integer() && token.contains("content") &&
                       token["content"].is_string();
    if (!whole || token["id"].get<std::int64_t>() < 0 ||
        token["id"].get<std::int64_t>() >= kMostTokenIds ||
        token["content"].get_ref<const std::string&>().empty())
      throw_input("an added token has no id from 0 to 2^22 - 1, or no content", where,
                  "{\"id\": 0, \"content\": \"<|endoftext|>\", ...}");
    const auto& content = token["content"].get_ref<const std::string&>();
    for (const char* unsupported : {"single_word", "lstrip", "rstrip"})
      if (flag(token, unsupported))
        throw_input(fmt::format("the added token '{}' has {} = true, which is not supported",
                                content.substr(0, 60), unsupported),
                    where,
                    fmt::format("a tokenizer whose added tokens have {} = false", unsupported));
    const auto id = token["id"].get<std::int32_t>();
    const auto known = vocab.find(content);
    const std::int64_t given = known != vocab.end()     ? known->get<std::int64_t>()
                               : ids_.contains(content) ? ids_.at(content)
                                                        : next_id;
    if (id != given)
      throw_input(fmt::format("the added token '{}' has the id {}, and Hugging Face's tokenizers "
                              "gives it {}",
                              content.substr(0, 60), id, given),
                  where, "its id in the vocabulary; new tokens follow that in their order");
    next_id = std::max<std::int64_t>(next_id, id + 1);
    add(content, id, flag(token, "normalized"));
  }
}

void AddedTokens::add(std::string content, std::int32_t id, bool normalized) {
  contents_[id] = content;
  Group& group = normalized ? normalized_ : raw_;
  std::vector<std::string>& same = group.by_first[static_cast<unsigned char>(content[0])];
  if (same.empty()) group.firsts += content[0];
  same.push_back(content);
  std::ranges::stable_sort(same, std::ranges::greater{}, &std::string::size);
  ids_[std::move(content)] = id;
}

const std::string* AddedTokens::any_normalized() const {
  if (normalized_.firsts.empty()) return nullptr;
  return &normalized_.by_first[static_cast<unsigned char>(normalized_.firsts[0])].front();
}

AddedTokens::Match AddedTokens::next(const Group& group, std::string_view text,
                                     std::size_t begin) const {
  for (std::size_t at = text.find_first_of(group.firsts, begin); at != std::string_view::npos;
       at = text.find_first_of(group.firsts, at + 1))
    for (const std::string& content : group.by_first[static_cast<unsigned char>(text[at])])
      if (text.substr(at).starts_with(content)) return {at, content.size(), ids_.at(content)};
  return {text.size(), 0, 0};
}

const std::string* AddedTokens::content(std::int32_t id) const {
  const auto found = contents_.find(id);
  return found == contents_.end() ? nullptr : &found->second;
}

std::optional<std::int32_t> AddedTokens::special(SpecialToken which) const {
  const auto* const usual = std::ranges::find(kUsualNames, which, &UsualNames::which);
  for (const std::string_view name : usual->names)
    if (const auto found = ids_.find(std::string(name)); !name.empty() && found != ids_.end())
      return found->second;
  return std::nullopt;
}

bool AddedTokens::any_has(char character) const {
  return std::ranges::any_of(
      ids_, [&](const auto& one) { return one.first.find(character) != std::string::npos; });
}

}  // namespace concertina
