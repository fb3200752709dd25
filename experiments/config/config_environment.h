// Config keys from the environment: CONCERTINA__RUN__STEPS=10 sets run.steps = 10. Two underscores
// represent a dot; a single one may represent a hyphen. Case is ignored.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/config/config.h"

namespace concertina {

/// Whether a variable name has the form of a config key, existing or not.
bool names_key(std::string_view variable);

/// Environment variables that name keys, and their values.
using Variables = std::vector<std::pair<std::string, std::string>>;
Variables environment_variables();

/// Sets the keys that `variables` name. Throws Error{bad_input} with the variable's name if the key
/// does not exist, two variables set the same key, or the value is invalid.
void read_environment(const Variables& variables, RunConfig& config);
/// The variables that set keys of `config`, with the values of these keys as TOML.
Variables from_environment(const RunConfig& config);

}  // namespace concertina
