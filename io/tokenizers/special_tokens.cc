#include "io/tokenizers/special_tokens.h"

#include <algorithm>
#include <set>

#include "core/error.h"
#include "io/strict_json.h"
#include "io/tokenizers/published_tokenizer.h"

namespace concertina {
namespace {

using DeclaredJson = nlohmann::json;

DeclaredJson object_in(const CompanionFile& file, const char* name) {
  const auto [text, path] = file(name);
  return path.empty() ? DeclaredJson::object() : parse_strict_object(text, path);
}

/// A token is either its name or an object with more properties.
DeclaredJson token_of(const DeclaredJson& value, const std::string& key, const std::string& where) {
  DeclaredJson token = value.is_string() ? DeclaredJson{{"content", value}} : value;
  if (!token.is_object() || !token.contains("content") || !token["content"].is_string())
    throw_input(fmt::format("'{}' has the invalid value {}", key, value.dump().substr(0, 60)),
                where, "use the text of a token, or null");
  return token;
}

/// Returns the tokens in the files with their ids, or -1 if these are unspecified.
std::vector<std::pair<std::int64_t, DeclaredJson>> named_tokens(const DeclaredJson& settings,
                                                                const CompanionFile& file) {
  std::vector<std::pair<std::int64_t, DeclaredJson>> all;
  const auto add = [&](const std::string& key, const DeclaredJson& value, std::int64_t id) {
    if (!value.is_null()) all.emplace_back(id, token_of(value, key, kTokenizerConfig));
  };
  if (const auto known = settings.find("added_tokens_decoder");
      known != settings.end() && known->is_object()) {
    for (const auto& [id, token] : known->items())
      add("added_tokens_decoder", token, std::atoll(id.c_str()));
  } else {
    const DeclaredJson added = object_in(file, "added_tokens.json");
    for (const auto& [name, id] : added.items())
      if (id.is_number_integer()) add(name, name, id.get<std::int64_t>());
  }
  std::ranges::stable_sort(all, {}, [](const auto& one) { return one.first; });
  for (const SpecialKey& special : kSpecialKeys)
    if (const auto declared = settings.find(special.key); declared != settings.end())
      add(special.key, *declared, -1);
  for (const char* more : {"additional_special_tokens", "extra_special_tokens"})
    if (const auto list = settings.find(more); list != settings.end() && list->is_array())
      for (const DeclaredJson& token : *list) add(more, token, -1);
  return all;
}

}  // namespace

DeclaredJson merged_settings(const CompanionFile& file) {
  DeclaredJson settings = object_in(file, kTokenizerConfig);
  // Like transformers, which saves this key if special_tokens_map.json is not needed.
  if (!settings.contains("added_tokens_decoder"))
    settings.update(object_in(file, kSpecialTokensMap));
  return settings;
}

DeclaredTokens declared_tokens(const DeclaredJson& settings, const CompanionFile& file) {
  DeclaredTokens declared;
  const DeclaredJson generation = object_in(file, "generation_config.json");
  for (const SpecialKey& special : kSpecialKeys) {
    if (const auto value = settings.find(special.key); value != settings.end()) {
      const std::string name =
          value->is_null()
              ? ""
              : token_of(*value, special.key, kTokenizerConfig)["content"].get<std::string>();
      if (value->is_null() || !name.empty()) declared[special.token] = {.name = name, .id = {}};
      continue;
    }
    auto id = generation.find(std::string(special.key) + "_id");
    if (id == generation.end()) continue;
    const DeclaredJson first = id->is_array() && !id->empty() ? (*id)[0] : *id;
    if (first.is_number_unsigned() && first < (1 << 30))
      declared[special.token] = {.name = "", .id = first.get<std::int32_t>()};
  }
  return declared;
}

bool add_declared_tokens(const DeclaredJson& settings, const CompanionFile& file,
                         DeclaredJson& description) {
  DeclaredJson& added = description["added_tokens"];
  if (added.is_null()) added = DeclaredJson::array();
  const auto model = description.find("model");
  if (!added.is_array() || model == description.end() || !model->is_object()) return false;
  static const DeclaredJson kNone;
  const DeclaredJson& vocabulary = model->contains("vocab") ? (*model)["vocab"] : kNone;
  std::set<std::string> there;
  auto next = static_cast<std::int64_t>(vocabulary.size());
  for (const DeclaredJson& token : added)
    if (token.is_object() && token.contains("content") && token["content"].is_string()) {
      there.insert(token["content"].get<std::string>());
      if (token.contains("id") && token["id"].is_number_integer())
        next = std::max(next, 1 + token["id"].get<std::int64_t>());
    }
  bool more = false;
  for (auto& [declared, token] : named_tokens(settings, file)) {
    const std::string name = token["content"].get<std::string>();
    if (name.empty() || !there.insert(name).second) continue;
    std::int64_t id = declared;
    if (vocabulary.is_object() && vocabulary.contains(name) && vocabulary[name].is_number_integer())
      id = vocabulary[name].get<std::int64_t>();
    if (vocabulary.is_array())
      for (std::size_t i = 0; i < vocabulary.size(); ++i)
        if (vocabulary[i].is_array() && !vocabulary[i].empty() && vocabulary[i][0] == name)
          id = static_cast<std::int64_t>(i);
    if (id < 0) id = next;
    next = std::max(next, id + 1);
    DeclaredJson one = {{"id", id}, {"content", name}, {"special", true}};
    for (const char* flag : {"single_word", "lstrip", "rstrip", "normalized"})
      one[flag] = token.contains(flag) && token[flag] == true;
    added.push_back(std::move(one));
    more = true;
  }
  return more;
}

std::map<SpecialToken, std::optional<std::int32_t>> ids_of(const DeclaredTokens& declared,
                                                           const Tokenizer& tokenizer) {
  std::map<SpecialToken, std::optional<std::int32_t>> ids;
  const auto count = static_cast<std::int32_t>(tokenizer.vocabulary());
  for (const auto& [token, one] : declared)
    if (one.id ? *one.id < count : one.name.empty()) ids[token] = one.id;
  for (std::int32_t id = 0; id < count; ++id) {
    const std::string name = tokenizer.name(id);
    for (const auto& [token, one] : declared)
      if (!one.name.empty() && one.name == name) ids[token] = id;  // the last one wins
  }
  return ids;
}

}  // namespace concertina
