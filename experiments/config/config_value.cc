#include "experiments/config/config_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <initializer_list>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

#include "core/error.h"
#include "core/text/nearest.h"
#include "experiments/config/config_keys.h"
#include "experiments/config/config_toml.h"

namespace concertina {
namespace {

constexpr const char* kForm =
    "a list of pipelines, each {stages = [{rank = 0, units = [0, 4]}, ...], microbatches = [0, 4]}";

/// Reads parallel.layout. Whether a layout covers all units and microbatches is checked elsewhere.
class LayoutReader {
 public:
  explicit LayoutReader(const TomlSource& source) : source_(source) {}

  Layout layout(const toml::node& node) const {
    Layout result;
    for (const toml::node& item : list(node, "parallel.layout"))
      result.pipelines.push_back(pipeline(item));
    return result;
  }

 private:
  Pipeline pipeline(const toml::node& node) const {
    const toml::table& table = fields(node, "a pipeline", {"stages", "microbatches"});
    Pipeline result;
    const toml::array& stages = list(*table.get("stages"), "stages");
    if (stages.empty()) fail(stages, "a pipeline has no stages");
    for (const toml::node& item : stages) result.stages.push_back(stage(item));
    std::tie(result.first_microbatch, result.last_microbatch) =
        interval(*table.get("microbatches"), "microbatches");
    return result;
  }

  StagePlacement stage(const toml::node& node) const {
    const toml::table& table = fields(node, "a stage", {"rank", "units"});
    StagePlacement result;
    result.rank = number(*table.get("rank"), "rank");
    std::tie(result.first_unit, result.last_unit) = interval(*table.get("units"), "units");
    return result;
  }

  /// Returns the node as a table after checking that it has exactly these keys.
  const toml::table& fields(const toml::node& node, const char* what,
                            std::initializer_list<std::string_view> names) const {
    const toml::table* table = node.as_table();
    if (table == nullptr) fail(node, fmt::format("{} is not a table", what));
    for (const auto& [key, value] : *table)
      if (std::find(names.begin(), names.end(), key.str()) == names.end())
        fail(value, fmt::format("{}: unknown key '{}'", what, key.str()));
    for (const std::string_view name : names)
      if (!table->contains(name)) fail(node, fmt::format("{}: missing key '{}'", what, name));
    return *table;
  }

  const toml::array& list(const toml::node& node, const char* what) const {
    if (const toml::array* array = node.as_array()) return *array;
    fail(node, fmt::format("{} is not a list", what));
  }

  int number(const toml::node& node, const char* what) const {
    const auto value = node.is_integer() ? node.value<std::int64_t>() : std::nullopt;
    if (!value || *value < 0 || *value > std::numeric_limits<int>::max())
      fail(node, fmt::format("{} is not an integer >= 0", what));
    return static_cast<int>(*value);
  }

  /// Reads [first, last) and checks that first < last.
  std::pair<int, int> interval(const toml::node& node, const char* what) const {
    const toml::array& pair = list(node, what);
    if (pair.size() != 2) fail(node, fmt::format("{} is not a pair [first, last)", what));
    const int first = number(pair[0], what), last = number(pair[1], what);
    if (first >= last)
      fail(node,
           fmt::format("{} = [{}, {}] is empty: first must be below last", what, first, last));
    return {first, last};
  }

  [[noreturn]] void fail(const toml::node& node, std::string what) const {
    source_.refuse(node, "parallel.layout", "parallel.layout: " + std::move(what), kForm);
  }

  const TomlSource& source_;
};

/// Reads the value of one key according to its type.
class ValueReader {
 public:
  ValueReader(const Key& key, const TomlSource& source)
      : key_(key), source_(source), fix_(expected(key)) {}

  void read(const toml::node& node, bool& out) const { out = source_.truth(node, key_.name, fix_); }

  void read(const toml::node& node, std::int64_t& out) const {
    const std::int64_t value = source_.whole(node, key_.name, fix_);
    require_range(node, static_cast<double>(value));
    out = value;
  }

  void read(const toml::node& node, int& out) const {
    std::int64_t value = 0;
    read(node, value);
    if (value < std::numeric_limits<int>::min() || value > std::numeric_limits<int>::max())
      source_.out_of_range(node, key_.name, fix_);
    out = static_cast<int>(value);
  }

  void read(const toml::node& node, double& out) const {
    const double value = source_.number(node, key_.name, fix_);
    require_range(node, value);
    require_fp32(node, value);
    out = value;
  }

  void read(const toml::node& node, std::string& out) const {
    const std::string& value = source_.text(node, key_.name, fix_);
    if (value.find('\0') != std::string::npos)
      fail(node, fmt::format("{} contains a NUL character", key_.name));
    if (!key_.choices.empty() && (key_.is_file == nullptr || !key_.is_file(value)))
      require_choice(node, value);
    out = value;
  }

  /// Reads a list of values; a single value counts as a list of one.
  template <class Value>
  void read(const toml::node& node, std::vector<Value>& out) const {
    std::vector<Value> values;
    if (const toml::array* items = node.as_array())
      for (const toml::node& item : *items) read(item, values.emplace_back());
    else
      read(node, values.emplace_back());
    out = std::move(values);
  }

  void read(const toml::node& node, std::array<double, 2>& out) const {
    const toml::array& items = source_.list(node, key_.name, fix_);
    if (items.size() != 2) source_.wrong_type(node, key_.name, fix_);
    std::array<double, 2> values{};
    for (std::size_t i = 0; i < 2; ++i) read(items[i], values[i]);
    out = values;
  }

  void read(const toml::node& node, ByteSize& out) const {
    const std::string text = node.is_integer() ? fmt::format("{}", **node.as_integer())
                                               : source_.text(node, key_.name, fix_);
    const std::optional<ByteSize> size = parse_byte_size(text);
    if (!size) fail(node, fmt::format("{} = {} is not a size", key_.name, text));
    out = *size;
  }

  void read(const toml::node& node, Layout& out) const { out = LayoutReader(source_).layout(node); }

 private:
  [[noreturn]] void fail(const toml::node& node, std::string what) const {
    source_.refuse(node, key_.name, std::move(what), fix_);
  }

  void require_range(const toml::node& node, double value) const {
    if (!std::isfinite(value) || !key_.range.contains(value))
      source_.out_of_range(node, key_.name, fix_);
  }

  /// Kernels use fp32: rounding to it must not move the value to an excluded end of its range.
  void require_fp32(const toml::node& node, double value) const {
    const auto rounded = static_cast<double>(static_cast<float>(value));
    const Range& range = key_.range;
    if (std::isfinite(rounded) && !(range.open_low && rounded <= range.low) &&
        !(range.open_high && rounded >= range.high))
      return;
    fail(node, fmt::format("{} = {} is {} in fp32", key_.name, value, rounded));
  }

  void require_choice(const toml::node& node, const std::string& value) const {
    const auto& names = key_.choices;
    if (std::ranges::find(names, value) != names.end()) return;
    const std::string nearest(nearest_word(value, names));
    source_.refuse(node, key_.name,
                   fmt::format("{} = {} is not a valid value", key_.name, to_toml(value)),
                   nearest.empty() ? fix_ : fmt::format("{} ({})", to_toml(nearest), fix_));
  }

  const Key& key_;
  const TomlSource& source_;
  const std::string fix_;
};

}  // namespace

void assign_key(const std::string& key, const toml::node& value, const TomlSource& source,
                RunConfig& config) {
  const Key* found = find_key(key);
  if (found == nullptr) unknown_key(key, source.place(value, key));
  const ValueReader reader(*found, source);
  std::visit([&](auto* out) { reader.read(value, *out); }, found->field(config));
  config.origins.insert_or_assign(key, source.origin(value));
}

void unknown_key(const std::string& key, std::string where) {
  const std::string nearest = nearest_key(key);
  const std::string section = key.substr(0, key.find('.')), known = keys_of_section(section);
  const std::string list = known.empty()
                               ? "--help-config lists all keys"
                               : fmt::format("keys of [{}]: {}; see --help-config", section, known);
  throw_input(fmt::format("unknown key {}", key), std::move(where),
              nearest.empty() ? list : fmt::format("{} ({})", nearest, list));
}

}  // namespace concertina
