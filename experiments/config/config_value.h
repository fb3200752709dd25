// A config key's value from a node of TOML, wherever it stands: a config file, `--set`, a study.
// Invariant: what is assigned is of the key's type and within its range.
#pragma once

#include <string>

#include "experiments/config/config.h"
#include "io/toml_reader.h"

namespace concertina {

/// Throws Error{bad_input} for a key that does not exist, or what is no value of it.
void assign_key(const std::string& key, const toml::node& value, const TomlSource& source,
                RunConfig& config);

/// Throws Error{bad_input} that names the nearest key and those of its section.
[[noreturn]] void unknown_key(const std::string& key, std::string where);

}  // namespace concertina
