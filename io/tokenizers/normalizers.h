#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/tokenizers/stages.h"

namespace concertina {

/// Returns the steps of the "normalizer" of a tokenizer.json, which may be null. Throws
/// Error{bad_input} with `where` for an unsupported step or rule.
std::vector<Normalizer> read_normalizers(const nlohmann::json& normalizer,
                                         const std::string& where);

/// Returns a function that replaces matches of the step's pattern. Throws like read_normalizers().
std::function<std::string(std::string_view)> read_replacement(const nlohmann::json& step,
                                                              const std::string& where);

}  // namespace concertina
