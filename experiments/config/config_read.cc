#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <optional>
#include <sstream>

#include "core/error.h"
#include "core/nearest.h"
#include "experiments/config/config_keys.h"
#include "experiments/config/config_layout.h"
#include "experiments/config/config_toml.h"
#include "experiments/config/input_file.h"

namespace concertina {
namespace {

std::string describe(const toml::node& node) {
  std::ostringstream text;
  node.visit([&](const auto& value) { text << value.type() << " "; });
  if (const auto* string = node.as_string())
    text << to_toml(string->get());
  else if (node.is_value())
    text << toml::node_view<const toml::node>(node);
  return text.str();
}

/// Assigns TOML nodes to keys of one RunConfig.
class Reader {
 public:
  Reader(std::string source, bool has_lines, RunConfig& config)
      : source_(std::move(source)), has_lines_(has_lines), config_(config) {}

  void document(const toml::table& root) {
    for (const auto& [section, node] : root) {
      const std::string name(section.str());
      const toml::table* table = node.as_table();
      if (table == nullptr && is_section(name))
        throw_input(fmt::format("[{}] is a table of keys, here it is a {}", name, describe(node)),
                    place(node.source(), name), fmt::format("{}.key = value", name));
      if (table == nullptr || (table->empty() && !is_section(name)))
        unknown(name, place(section.source(), name));
      for (const auto& [key, value] : *table) {
        const std::string path = fmt::format("{}.{}", name, key.str());
        if (find_key(path) == nullptr) unknown(path, place(key.source(), path));
        assign(path, value);
      }
    }
  }

  void assign(const std::string& name, const toml::node& node) {
    key_ = find_key(name);
    if (key_ == nullptr) unknown(name, fmt::format("{}: {}", source_, name));
    std::visit([&](auto* out) { read(node, *out); }, key_->field(config_));
    config_.origins.insert_or_assign(name, origin(node.source()));
  }

 private:
  [[noreturn]] static void unknown(const std::string& name, std::string where) {
    const std::string nearest = nearest_key(name), section = name.substr(0, name.find('.'));
    const std::string known = keys_of_section(section);
    const std::string list =
        known.empty() ? "--help-config lists all keys"
                      : fmt::format("keys of [{}]: {}; see --help-config", section, known);
    throw_input(fmt::format("unknown key {}", name), std::move(where),
                nearest.empty() ? list : fmt::format("{} ({})", nearest, list));
  }

  std::string origin(const toml::source_region& region) const {
    if (!has_lines_) return source_;
    return fmt::format("{}:{}:{}", source_, region.begin.line, region.begin.column);
  }

  std::string place(const toml::source_region& region, std::string_view name) const {
    return fmt::format("{}: {}", origin(region), name);
  }

  [[noreturn]] void fail(const toml::node& node, std::string what) const {
    throw_input(std::move(what), place(node.source(), key_->name), expected(*key_));
  }

  [[noreturn]] void unknown_value(const toml::node& node, const std::string& value,
                                  std::string_view nearest) const {
    throw_input(fmt::format("{} = {} is unknown", key_->name, to_toml(value)),
                place(node.source(), key_->name),
                nearest.empty()
                    ? expected(*key_)
                    : fmt::format("{} ({})", to_toml(std::string(nearest)), expected(*key_)));
  }

  [[noreturn]] void wrong_type(const toml::node& node) const {
    fail(node, fmt::format("{} has the wrong type: {}", key_->name, describe(node)));
  }

  void require_range(const toml::node& node, double value) const {
    if (!std::isfinite(value) || !key_->range.contains(value))
      fail(node, fmt::format("{} = {} is out of range", key_->name, value));
  }

  void read(const toml::node& node, bool& out) const {
    if (!node.is_boolean()) wrong_type(node);
    out = **node.as_boolean();
  }

  void read(const toml::node& node, std::int64_t& out) const {
    if (!node.is_integer()) wrong_type(node);
    const std::int64_t value = **node.as_integer();
    require_range(node, static_cast<double>(value));
    out = value;
  }

  void read(const toml::node& node, int& out) const {
    std::int64_t value = 0;
    read(node, value);
    if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max())
      fail(node, fmt::format("{} = {} is out of range", key_->name, value));
    out = static_cast<int>(value);
  }

  void read(const toml::node& node, double& out) const {
    if (!node.is_number()) wrong_type(node);
    const double value = node.value<double>().value_or(std::nan(""));
    require_range(node, value);
    out = value;
  }

  void read(const toml::node& node, std::string& out) const {
    if (!node.is_string()) wrong_type(node);
    const std::string& value = node.as_string()->get();
    if (value.find('\0') != std::string::npos)
      fail(node, fmt::format("{} holds a NUL character", key_->name));
    if (key_->choices != nullptr && (key_->is_file == nullptr || !key_->is_file(value))) {
      const auto names = key_->choices();
      if (std::find(names.begin(), names.end(), value) == names.end())
        unknown_value(node, value, nearest_word(value, names));
    }
    out = value;
  }

  void read(const toml::node& node, std::vector<std::string>& out) const {
    std::vector<std::string> values;
    if (const toml::array* items = node.as_array()) {
      for (const toml::node& item : *items) read(item, values.emplace_back());
    } else {
      read(node, values.emplace_back());
    }
    out = std::move(values);
  }

  void read(const toml::node& node, std::vector<std::int64_t>& out) const {
    std::vector<std::int64_t> values;
    if (const toml::array* items = node.as_array())
      for (const toml::node& item : *items) read(item, values.emplace_back());
    else
      read(node, values.emplace_back());
    out = std::move(values);
  }

  void read(const toml::node& node, std::array<double, 2>& out) const {
    const toml::array* items = node.as_array();
    if (items == nullptr || items->size() != 2) wrong_type(node);
    std::array<double, 2> values{};
    for (std::size_t i = 0; i < 2; ++i) read((*items)[i], values[i]);
    out = values;
  }

  void read(const toml::node& node, ByteSize& out) const {
    if (!node.is_string() && !node.is_integer()) wrong_type(node);
    const std::string text =
        node.is_string() ? node.as_string()->get() : fmt::format("{}", **node.as_integer());
    const std::optional<ByteSize> size = parse_byte_size(text);
    if (!size) fail(node, fmt::format("{} = {} is not a size", key_->name, text));
    out = *size;
  }

  void read(const toml::node& node, Layout& out) const {
    out =
        read_layout(node, [&](const toml::node& part) { return place(part.source(), key_->name); });
  }

  std::string source_;
  bool has_lines_ = true;
  RunConfig& config_;
  const Key* key_ = nullptr;
};

toml::table parse_file(std::string_view toml, const std::string& source) {
  try {
    return toml::parse(toml);
  } catch (const toml::parse_error& error) {
    const toml::source_position at = error.source().begin;
    throw_input(fmt::format("not valid TOML: {}", error.description()),
                fmt::format("{}:{}:{}", source, at.line, at.column),
                "[table] lines and key = value lines; text in double quotes");
  }
}

/// {value = ...} from what stands after `--set table.key=`.
toml::table parse_value(const std::string& value, const std::string& where, const Key* key) {
  try {
    return toml::parse("value = " + value);
  } catch (const toml::parse_error&) {
    throw_input("--set has a value that cannot be read", where,
                key == nullptr ? "--set table.key=value" : expected(*key));
  }
}

/// Text for keys that hold text, or a size, needs no quotes: `--set data.text=book.txt`.
std::string quote_if_text(const Key& key, std::string_view value) {
  RunConfig scratch;
  const KeyField field = key.field(scratch);
  const bool list = std::holds_alternative<std::vector<std::string>*>(field);
  const bool size = std::holds_alternative<ByteSize*>(field);
  if (!list && !size && !std::holds_alternative<std::string*>(field)) return std::string(value);
  const char first = value.empty() ? ' ' : value.front();
  if (first == '"' || first == '\'' || (list && first == '[')) return std::string(value);
  return to_toml(std::string(value));
}

}  // namespace

void read_config(std::string_view toml, const std::string& source, RunConfig& config) {
  Reader(source, true, config).document(parse_file(toml, source));
}

void read_config_file(const std::string& path, RunConfig& config) {
  constexpr std::uint64_t kMostBytes = 16 << 20;
  read_config(read_input_file(path, kMostBytes, "@FILE.toml names an existing TOML file"), path,
              config);
}

void set_config(std::string_view assignment, RunConfig& config) {
  const std::string where = fmt::format("--set {}", assignment);
  const std::size_t equals = assignment.find('=');
  if (equals == std::string_view::npos || equals == 0)
    throw_input("--set has no value", where, "--set table.key=value");
  const std::string name(assignment.substr(0, equals));
  Reader reader("--set", false, config);
  const Key* key = find_key(name);
  const std::string value =
      key == nullptr ? "0" : quote_if_text(*key, assignment.substr(equals + 1));
  const toml::table table = parse_value(value, where, key);
  if (table.size() != 1) throw_input("--set holds several lines", where, "one --set for each key");
  reader.assign(name, *table.get("value"));
}

RunConfig load_config(const std::vector<std::string>& files, const std::vector<std::string>& sets) {
  RunConfig config;
  for (const std::string& file : files) read_config_file(file, config);
  for (const std::string& assignment : sets) set_config(assignment, config);
  validate(config);
  return config;
}

}  // namespace concertina
