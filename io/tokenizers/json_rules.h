// The rules of a tokenizer.json, read so that nothing that would change tokens is passed over.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
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
/// The "type" of a step; empty if it has none.
std::string type_of(const nlohmann::json& step, const std::string& where);

/// Each key of `object` has the value that `must` says, is null (which is what "" and false mean
/// too), or is one of those that may be anything.
void require_only(const nlohmann::json& object,
                  const std::vector<std::pair<std::string, nlohmann::json>>& must,
                  const std::vector<std::string>& may, const std::string& where);
/// parent[key] is null or not there.
void require_null(const nlohmann::json& parent, const char* key, const std::string& where);
/// The file asks neither for truncation nor for padding.
void require_no_truncation(const nlohmann::json& file, const std::string& where);

/// A "vocab" object: ids from 0 on, none twice, below 2^22.
std::vector<std::pair<std::string, std::int32_t>> read_vocabulary(const nlohmann::json& vocab,
                                                                  const std::string& where);

}  // namespace concertina
