// The rules of a tokenizer.json, read so that nothing that would change tokens is passed over.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace concertina {

inline constexpr std::int64_t kMostTokenIds = std::int64_t{1} << 22;

/// parent[key], which must be an object (a list). Input errors name `where` and the key, as all
/// below.
const nlohmann::json& object_of(const nlohmann::json& parent, const char* key,
                                const std::string& where);
const nlohmann::json& list_of(const nlohmann::json& parent, const char* key,
                              const std::string& where);
/// parent[key]; false where it is not there or null.
bool flag_of(const nlohmann::json& parent, const char* key, const std::string& where);
/// parent[key], a text or a whole number from 0 to 2^31 - 1.
std::string text_of(const nlohmann::json& parent, const char* key, const std::string& where);
std::int64_t count_of(const nlohmann::json& parent, const char* key, const std::string& where);
/// The "type" of a step; empty if it has none.
std::string type_of(const nlohmann::json& step, const std::string& where);
/// The steps that `step` is: itself, or if it is a Sequence those of its `list`, or none if it is
/// null.
std::vector<const nlohmann::json*> steps_of(const nlohmann::json& step, const char* list,
                                            const std::string& where);

/// Each key of `object` has the value that `must` says, is null (which is what "" and false mean
/// too), or is one of those that may be anything.
void require_only(const nlohmann::json& object,
                  const std::vector<std::pair<std::string, nlohmann::json>>& must,
                  const std::vector<std::string>& may, const std::string& where);
/// A "vocab" object: ids from 0 on, none twice, below 2^22.
std::vector<std::pair<std::string, std::int32_t>> read_vocabulary(const nlohmann::json& vocab,
                                                                  const std::string& where);

}  // namespace concertina
