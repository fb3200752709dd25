// Reads the rules in a tokenizer.json so that nothing that affects tokens is ignored.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace concertina {

inline constexpr std::int64_t kMostTokenIds = std::int64_t{1} << 22;

/// Return parent[key], which must be an object or a list. All functions here throw Error{bad_input}
/// with `where` and the key.
const nlohmann::json& object_of(const nlohmann::json& parent, const char* key,
                                const std::string& where);
const nlohmann::json& list_of(const nlohmann::json& parent, const char* key,
                              const std::string& where);
/// Returns parent[key], or false if it is missing or null.
bool flag_of(const nlohmann::json& parent, const char* key, const std::string& where);
/// Return parent[key], a string or an integer from 0 to 2^31 - 1.
std::string text_of(const nlohmann::json& parent, const char* key, const std::string& where);
std::int64_t count_of(const nlohmann::json& parent, const char* key, const std::string& where);
/// Returns the "type" of a step; empty if it has none.
std::string type_of(const nlohmann::json& step, const std::string& where);
/// Returns the steps in `step`: `step` itself, or the elements of its `list` if it is a Sequence,
/// or none if it is null.
std::vector<const nlohmann::json*> steps_of(const nlohmann::json& step, const char* list,
                                            const std::string& where);

/// Requires that each key of `object` has the value in `must` (null, "" and false are equivalent)
/// or is listed in `may`, and that no non-empty value in `must` is missing.
void require_only(const nlohmann::json& object,
                  const std::vector<std::pair<std::string, nlohmann::json>>& must,
                  const std::vector<std::string>& may, const std::string& where);
/// Reads a "vocab" object. Ids must be unique and between 0 and 2^22 - 1.
std::vector<std::pair<std::string, std::int32_t>> read_vocabulary(const nlohmann::json& vocab,
                                                                  const std::string& where);

}  // namespace concertina
