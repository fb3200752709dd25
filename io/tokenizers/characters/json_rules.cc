#include "io/tokenizers/characters/json_rules.h"

#include <algorithm>
#include <unordered_set>

#include "core/error.h"

namespace concertina {
namespace {

using RulesJson = nlohmann::json;

const RulesJson* find_key(const RulesJson& parent, const char* key) {
  if (!parent.is_object()) return nullptr;
  const auto found = parent.find(key);
  return found == parent.end() || found->is_null() ? nullptr : &*found;
}

bool means_nothing(const RulesJson& value) {
  return value.is_null() || value == RulesJson("") || value == RulesJson(false);
}

}  // namespace

const RulesJson& object_of(const RulesJson& parent, const char* key, const std::string& where) {
  const RulesJson* const found = find_key(parent, key);
  if (found == nullptr || !found->is_object())
    throw_input(fmt::format("missing object '{}'", key), where, "use a complete tokenizer.json");
  return *found;
}

const RulesJson& list_of(const RulesJson& parent, const char* key, const std::string& where) {
  const RulesJson* const found = find_key(parent, key);
  if (found == nullptr || !found->is_array())
    throw_input(fmt::format("missing list '{}'", key), where, "use a complete tokenizer.json");
  return *found;
}

bool flag_of(const RulesJson& parent, const char* key, const std::string& where) {
  const RulesJson* const found = find_key(parent, key);
  if (found == nullptr) return false;
  if (!found->is_boolean())
    throw_input(fmt::format("'{}' has the invalid value {}", key, found->dump().substr(0, 60)),
                where, "use true or false");
  return found->get<bool>();
}

std::string text_of(const RulesJson& parent, const char* key, const std::string& where) {
  const RulesJson* const found = find_key(parent, key);
  if (found == nullptr || !found->is_string())
    throw_input(fmt::format("'{}' is not a string", key), where,
                fmt::format("use \"{}\": \"...\"", key));
  return found->get<std::string>();
}

std::int64_t count_of(const RulesJson& parent, const char* key, const std::string& where) {
  constexpr std::uint64_t kMost = std::uint64_t{1} << 31;
  const RulesJson* const found = find_key(parent, key);
  if (found == nullptr || !found->is_number_unsigned() || found->get<std::uint64_t>() >= kMost)
    throw_input(fmt::format("'{}' is not an integer", key), where,
                "use an integer from 0 to 2^31 - 1");
  return found->get<std::int64_t>();
}

std::string type_of(const RulesJson& step, const std::string& where) {
  const RulesJson* const found = find_key(step, "type");
  if (found == nullptr) return "";
  if (!found->is_string())
    throw_input(fmt::format("invalid type {}", found->dump().substr(0, 60)), where, "use a name");
  return found->get<std::string>();
}

std::vector<const RulesJson*> steps_of(const RulesJson& step, const char* list,
                                       const std::string& where) {
  if (step.is_null()) return {};
  if (type_of(step, where) != "Sequence") return {&step};
  require_only(step, {}, {"type", list}, where);
  std::vector<const RulesJson*> all;
  for (const RulesJson& inner : list_of(step, list, where)) {
    const auto more = steps_of(inner, list, where);
    all.insert(all.end(), more.begin(), more.end());
  }
  return all;
}

void require_only(const RulesJson& object,
                  const std::vector<std::pair<std::string, RulesJson>>& must,
                  const std::vector<std::string>& may, const std::string& where) {
  for (const auto& [key, value] : object.items()) {
    if (std::ranges::find(may, key) != may.end()) continue;
    const auto rule = std::ranges::find(must, key, &std::pair<std::string, RulesJson>::first);
    const bool known = rule != must.end();
    if (known && (value == rule->second || (means_nothing(value) && means_nothing(rule->second))))
      continue;
    throw_input(
        fmt::format("{} = {} is not supported", key,
                    value.dump(-1, ' ', false, RulesJson::error_handler_t::replace).substr(0, 60)),
        where,
        known ? fmt::format("use {} = {}", key, rule->second.dump())
              : "use a tokenizer without it");
  }
  for (const auto& [key, value] : must)
    if (!object.contains(key) && !means_nothing(value) && key != "use_regex")
      throw_input(fmt::format("'{}' is missing", key), where,
                  fmt::format("use {} = {}", key, value.dump()));
}

std::vector<std::pair<std::string, std::int32_t>> read_vocabulary(const RulesJson& vocab,
                                                                  const std::string& where) {
  std::vector<std::pair<std::string, std::int32_t>> tokens;
  std::unordered_set<std::int64_t> seen;
  for (const auto& [token, id] : vocab.items()) {
    const bool whole = id.is_number_integer() && id.get<double>() >= 0 &&
                       id.get<double>() < static_cast<double>(kMostTokenIds);
    if (!whole)
      throw_input(fmt::format("the token '{}' has the invalid id {}", token.substr(0, 60),
                              id.dump().substr(0, 60)),
                  where, "use ids from 0 to 2^22 - 1");
    if (!seen.insert(id.get<std::int64_t>()).second)
      throw_input(fmt::format("duplicate id {}", id.get<std::int64_t>()), where,
                  "use a unique id for each token");
    tokens.emplace_back(token, id.get<std::int32_t>());
  }
  return tokens;
}

}  // namespace concertina
