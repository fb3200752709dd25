#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "core/error.h"
#include "experiments/config/config_keys.h"
#include "experiments/config/config_toml.h"

namespace concertina {
namespace {

/// TOML is UTF-8: a file with other bytes could not be read again.
void require_utf8(std::string_view key, const std::string& value, const RunConfig& config) {
  try {
    (void)nlohmann::json(value).dump();
  } catch (const nlohmann::json::type_error&) {
    throw_input(fmt::format("{} has bytes that are not UTF-8, which no config file can hold: {}",
                            key, value),
                config.where(key),
                "other names for these files and directories (relative paths are made absolute: "
                "the current directory counts)");
  }
}

}  // namespace

std::string to_toml(ByteSize size) {
  return size.bytes == 0 ? "0" : to_toml(to_text(size));
}

std::string write_config(const RunConfig& config) {
  std::string text, section;
  for (const Key& key : config_keys()) {
    const std::size_t dot = key.name.find('.');
    if (key.name.substr(0, dot) != section) {
      section = key.name.substr(0, dot);
      text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", section);
    }
    if (!applies(key, config) && is_default(key, config)) continue;
    const std::string value = value_text(key, config);
    require_utf8(key.name, value, config);
    text += fmt::format("{} = {}\n", key.name.substr(dot + 1), value);
  }
  return text;
}

}  // namespace concertina
