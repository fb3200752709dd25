// Config keys from the environment: CONCERTINA__RUN__STEPS=10 is run.steps = 10. Two underscores
// stand for a dot, one also for a hyphen; capitals do not matter.
#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "experiments/config/config.h"

namespace concertina {

/// Whether a variable of this name would be of a key, be there one or not.
bool names_key(std::string_view variable);

/// Variables of the environment that name keys, and their values, by variable.
using Variables = std::vector<std::pair<std::string, std::string>>;
Variables environment_variables();

/// Sets the keys that `variables` name. Input errors with the variable: there is no such key, two
/// variables of one, a value that is none of the key.
void read_environment(const Variables& variables, RunConfig& config);
/// The variables that keys of `config` have their values from, and these values as TOML.
Variables from_environment(const RunConfig& config);

}  // namespace concertina
