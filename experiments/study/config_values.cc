#include "experiments/study/config_values.h"

#include <toml++/toml.h>

#include <cstdint>
#include <sstream>

#include "experiments/config/config_keys.h"
#include "io/file.h"
#include "io/run_files.h"

namespace concertina {
namespace {

void flatten_config(const toml::table& table, const std::string& path,
                    std::map<std::string, std::string>& keys) {
  for (const auto& [key, node] : table) {
    const std::string name = path.empty() ? std::string(key) : path + "." + std::string(key);
    if (const toml::table* inner = node.as_table()) {
      flatten_config(*inner, name, keys);
      continue;
    }
    std::ostringstream value;
    value << toml::node_view<const toml::node>(node);
    keys[name] = value.str();
  }
}

}  // namespace

std::map<std::string, std::string> keys_of(const std::string& toml) {
  std::map<std::string, std::string> keys;
  try {
    flatten_config(toml::parse(toml), "", keys);
  } catch (const toml::parse_error&) {
  }
  return keys;
}

std::map<std::string, std::string> keys_of_run(const std::string& directory) {
  constexpr std::uint64_t kMostConfigBytes = 16 << 20;
  const std::string config = run_file(directory, kConfigFile);
  if (!is_file(config)) return {};
  return keys_of(read_file(config, kMostConfigBytes, FilePlace::logged));
}

std::string setting_text(const std::string& toml) {
  const bool quoted = toml.size() > 1 && toml.front() == toml.back() &&
                      (toml.front() == '\'' || toml.front() == '"');
  return quoted ? toml.substr(1, toml.size() - 2) : toml;
}

bool is_place(const std::string& key) {
  const KeyRole role = role_of(key);
  return role == KeyRole::run_name || role == KeyRole::run_place || role == KeyRole::host_place;
}

}  // namespace concertina
