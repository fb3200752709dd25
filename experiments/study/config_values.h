// The keys of config files as text. Invariant: a config that cannot be read has no keys here.
#pragma once

#include <map>
#include <string>

namespace concertina {

/// The keys of a config.toml as "table.key", with the text of their values; none if it is not TOML.
std::map<std::string, std::string> keys_of(const std::string& toml);

/// Those of the run in `directory`; none without a config.toml.
std::map<std::string, std::string> keys_of_run(const std::string& directory);

/// A value as settings have it: a text without its quotes.
std::string setting_text(const std::string& toml);

/// Whether the key says where a run is kept, which says nothing of what it did.
bool is_place(const std::string& key);

}  // namespace concertina
