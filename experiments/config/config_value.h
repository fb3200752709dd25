// Assigns a TOML node, from a config file, `--set` or a study, to a config key.
// Invariant: an assigned value has the key's type and is within its range.
#pragma once

#include <string>

#include "experiments/config/config.h"
#include "io/toml_reader.h"

namespace concertina {

/// Throws Error{bad_input} if the key does not exist or the value is invalid.
void assign_key(const std::string& key, const toml::node& value, const TomlSource& source,
                RunConfig& config);

/// Throws Error{bad_input} that names the nearest key and the keys in the section.
[[noreturn]] void unknown_key(const std::string& key, std::string where);

}  // namespace concertina
