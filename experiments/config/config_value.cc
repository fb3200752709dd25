#include "experiments/config/config_value.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
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

/// Returns the values of both keys of a part of parallel.layout, which must have no other keys.
std::array<const toml::node*, 2> parts_of(const TomlSource& source, const toml::node& node,
                                          const std::string& path,
                                          const std::array<std::string_view, 2>& keys) {
  TomlTable table(source, source.table(node, path, kForm), path);
  const std::array parts{table.take(keys[0]), table.take(keys[1])};
  table.finish();
  for (std::size_t i = 0; i < 2; ++i)
    if (parts[i] == nullptr)
      table.refuse(fmt::format("missing key {}", table.name(keys[i])), kForm);
  return parts;
}

int read_number(const TomlSource& source, const toml::node& node, std::string_view name) {
  return static_cast<int>(source.whole(node, name, 0, std::numeric_limits<int>::max()));
}

/// Reads [first, last) and checks that first < last.
std::pair<int, int> read_interval(const TomlSource& source, const toml::node& node,
                                  std::string_view name) {
  const toml::array& pair = source.list(node, name, kForm);
  if (pair.size() != 2)
    source.refuse(node, name, fmt::format("{} is not a pair [first, last)", name), kForm);
  const int first = read_number(source, pair[0], name), last = read_number(source, pair[1], name);
  if (first >= last)
    source.refuse(
        node, name,
        fmt::format("{} = [{}, {}] is empty: first must be below last", name, first, last), kForm);
  return {first, last};
}

/// Reads parallel.layout. Whether a layout covers all units and microbatches is checked elsewhere.
Layout read_layout(const TomlSource& source, const toml::node& node) {
  Layout layout;
  for (const toml::node& item : source.list(node, "parallel.layout", kForm)) {
    const auto [stages, microbatches] =
        parts_of(source, item, "parallel.layout", {"stages", "microbatches"});
    Pipeline& pipeline = layout.pipelines.emplace_back();
    const toml::array& list = source.list(*stages, "parallel.layout.stages", kForm);
    if (list.empty())
      source.refuse(list, "parallel.layout.stages", "a pipeline has no stages", kForm);
    for (const toml::node& one : list) {
      const auto [rank, units] = parts_of(source, one, "parallel.layout.stages", {"rank", "units"});
      const auto [first, last] = read_interval(source, *units, "parallel.layout.stages.units");
      pipeline.stages.push_back(
          {read_number(source, *rank, "parallel.layout.stages.rank"), first, last});
    }
    std::tie(pipeline.first_microbatch, pipeline.last_microbatch) =
        read_interval(source, *microbatches, "parallel.layout.microbatches");
  }
  return layout;
}

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

  void read(const toml::node& node, Layout& out) const { out = read_layout(source_, node); }

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
