#include "experiments/config/config_toml.h"

#include <fmt/format.h>

#include <filesystem>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "core/version.h"
#include "experiments/config/config_keys.h"
#include "experiments/config/config_value.h"
#include "io/file.h"
#include "io/log_lines.h"
#include "io/run_files.h"

namespace concertina {
namespace {

/// Reads [model] and the tables of its registry entries below it, such as [model.llama].
void read_table(const toml::table& table, const std::string& name, const TomlSource& source,
                RunConfig& config) {
  for (const auto& [key, value] : table) {
    const std::string path = fmt::format("{}.{}", name, key.str());
    const toml::table* inner = value.as_table();
    if (find_key(path) == nullptr && inner != nullptr && is_table(path)) {
      read_table(*inner, path, source, config);
      continue;
    }
    if (find_key(path) == nullptr) unknown_key(path, source.place(key.source(), path));
    assign_key(path, value, source, config);
  }
}

void read_document(const toml::table& root, const TomlSource& source, RunConfig& config) {
  for (const auto& [section, node] : root) {
    const std::string name(section.str());
    const toml::table* table = node.as_table();
    if (table == nullptr && is_section(name))
      source.refuse(node, name,
                    fmt::format("[{}] must be a table of keys, got {}", name, node_text(node)),
                    fmt::format("{}.key = value", name));
    if (table == nullptr || (table->empty() && !is_section(name)))
      unknown_key(name, source.place(section.source(), name));
    read_table(*table, name, source, config);
  }
}

/// Parses the value of `table.key=value` as {value = ...}.
toml::table parse_value(const std::string& name, const std::string& value, const Key* key,
                        const TomlSource& source) {
  try {
    toml::table table = toml::parse("value = " + value);
    if (table.size() == 1) return table;
  } catch (const toml::parse_error&) {
  }
  throw_input(fmt::format("cannot parse {} = {}", name, value),
              fmt::format("{}: {}", source.name(), name),
              key == nullptr ? "table.key=value" : expected(*key));
}

/// Quotes the value of a string or size key if needed: `--set data.text=book.txt`.
std::string quote_if_text(const Key& key, std::string_view value) {
  const bool list = holds<std::vector<std::string>>(key);
  if (!list && !holds<ByteSize>(key) && !holds<std::string>(key)) return std::string(value);
  const char first = value.empty() ? ' ' : value.front();
  if (first == '"' || first == '\'' || (list && first == '[')) return std::string(value);
  return to_toml(std::string(value));
}

/// TOML is UTF-8: a config file with other bytes could not be read back.
void require_utf8(std::string_view key, const std::string& value, const RunConfig& config) {
  try {
    (void)nlohmann::json(value).dump();
  } catch (const nlohmann::json::type_error&) {
    throw_input(
        fmt::format("{} is not valid UTF-8 and cannot be written to a config file: {}", key, value),
        config.where(key),
        "rename these files or directories; relative paths are made absolute, so the "
        "current directory matters too");
  }
}

}  // namespace

void read_config(std::string_view toml, const std::string& source, RunConfig& config) {
  const TomlSource named(source);
  read_document(
      parse_toml(toml, named, "[table] lines and key = value lines; text in double quotes"), named,
      config);
}

void read_config_file(const std::string& path, RunConfig& config) {
  constexpr std::uint64_t kMostBytes = 16 << 20;
  read_config(read_input_file(path, kMostBytes, "@FILE.toml with an existing TOML file"), path,
              config);
}

namespace {

/// The program version that last launched the run in `path`; empty if unknown.
std::string version_of_run(const std::string& path) {
  std::string version;
  std::uint64_t from = 0;
  each_log_object(run_file(path, kLaunchesFile), from, [&](const nlohmann::json& launch, bool) {
    const auto found = launch.find("version");
    version = found != launch.end() && found->is_string() ? found->get<std::string>() : "";
  });
  return version;
}

}  // namespace

void read_run_directory(const std::string& path, RunConfig& config) {
  namespace fs = std::filesystem;
  const std::string file = (fs::path(path) / kConfigFile).string();
  if (!exists_at(file))
    throw_input("not a run directory: config.toml is missing", path,
                "a run directory, such as runs/NAME");
  try {
    read_config_file(file, config);
  } catch (const Error& error) {
    const std::string then = version_of_run(path), now(program_version().number);
    if (then.empty() || then == now) throw;
    throw_input(fmt::format("{}; the run was written by version {}; this is version {}",
                            error.message(), then, now),
                error.where(), fmt::format("{}; or use concertina {}", error.fix(), then));
  }
  fs::path directory = fs::path(path).lexically_normal();
  if (!directory.has_filename()) directory = directory.parent_path();
  if (directory.filename() == "." || directory.filename() == "..")
    directory = fs::canonical(directory);
  config.run.name = directory.filename().string();
  config.run.dir = directory.has_parent_path() ? directory.parent_path().string() : ".";
  config.origins["run.name"] = config.origins["run.dir"] = path;
  if (config.run.epochs > 0) config.origins.erase("run.steps");  // derived from the epochs
  const std::string kept = (directory / kTokenizerFolder).string();
  // The text it was read from may no longer exist.
  if (names_tokenizer_files(config.data.tokenizer) && !exists_at(config.data.tokenizer) &&
      is_folder(kept))
    config.data.tokenizer = kept;
}

void set_config(std::string_view assignment, RunConfig& config) {
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0)
    throw_input("not KEY=VALUE", fmt::format("command line: {}", assignment), "table.key=value");
  set_key(std::string(assignment.substr(0, equals)), assignment.substr(equals + 1), "command line",
          config);
}

void set_key(const std::string& name, std::string_view value, const std::string& source,
             RunConfig& config) {
  const TomlSource named(source, false);
  const Key* key = find_key(name);
  const std::string text = key == nullptr ? "0" : quote_if_text(*key, value);
  assign_key(name, *parse_value(name, text, key, named).get("value"), named, config);
}

std::string to_toml(ByteSize size) {
  return size.bytes == 0 ? "0" : to_toml(to_text(size));
}

std::string write_config(const RunConfig& config) {
  std::string text, section;
  for (const Key& key : config_keys()) {
    if (key.section() != section) {
      section = key.section();
      text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", section);
    }
    if (key.is_option && !applies(key, config) && is_default(key, config)) continue;
    const std::string value = value_text(key, config);
    require_utf8(key.name, value, config);
    text += fmt::format("{} = {}\n", key.within(), value);
  }
  return text;
}

}  // namespace concertina
