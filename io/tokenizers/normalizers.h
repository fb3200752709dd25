#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "io/tokenizers/stages.h"

namespace concertina {

/// The steps of a tokenizer.json's "normalizer", which may be null. Input errors, with `where`: one
/// that is not supported, or a rule of one.
std::vector<Normalizer> read_normalizers(const nlohmann::json& normalizer,
                                         const std::string& where);

/// The pattern of a step as a function that replaces its matches. Input errors as above.
std::function<std::string(std::string_view)> read_replacement(const nlohmann::json& step,
                                                              const std::string& where);

}  // namespace concertina
