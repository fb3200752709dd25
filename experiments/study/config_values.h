// The keys of config files as text. Invariant: an unreadable config yields no keys.
#pragma once

#include <map>
#include <string>

namespace concertina {

/// Returns the keys of a config.toml as "table.key", with their values as text; empty if it is not
/// TOML.
std::map<std::string, std::string> keys_of(const std::string& toml);

/// Returns the keys of the run in `directory`, or none if it has no config.toml.
std::map<std::string, std::string> keys_of_run(const std::string& directory);

/// Converts a TOML value to a setting's text, without quotes.
std::string setting_text(const std::string& toml);

/// Whether the key only determines where a run is stored.
bool is_place(const std::string& key);

}  // namespace concertina
