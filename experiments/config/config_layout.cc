#include "experiments/config/config_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <initializer_list>
#include <limits>
#include <optional>
#include <tuple>
#include <utility>

namespace concertina {
namespace {

constexpr const char* kForm =
    "a list of pipelines, each {stages = [{rank = 0, units = [0, 4]}, ...], microbatches = [0, 4]}";

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

  /// The table, once it has exactly these keys.
  const toml::table& fields(const toml::node& node, const char* what,
                            std::initializer_list<std::string_view> names) const {
    const toml::table* table = node.as_table();
    if (table == nullptr) fail(node, fmt::format("{} is not a table", what));
    for (const auto& [key, value] : *table)
      if (std::find(names.begin(), names.end(), key.str()) == names.end())
        fail(value, fmt::format("{} has no key '{}'", what, key.str()));
    for (const std::string_view name : names)
      if (!table->contains(name)) fail(node, fmt::format("{} lacks the key '{}'", what, name));
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

  /// [first, last) with first < last.
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

}  // namespace

Layout read_layout(const toml::node& node, const TomlSource& source) {
  return LayoutReader(source).layout(node);
}

}  // namespace concertina
