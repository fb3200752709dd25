#include "experiments/config/config_keys.h"

#include <fmt/format.h>

#include <algorithm>
#include <deque>

#include "core/backend.h"
#include "core/cpu/isa.h"
#include "core/cuda/backend.h"
#include "experiments/config/config_toml.h"
#include "experiments/config/schedule_file.h"
#include "io/datasets/dataset.h"
#include "models/lr_schedule.h"
#include "models/model.h"
#include "models/optimizer.h"
#include "models/task.h"
#include "parallel/comm/tensor_communicator.h"
#include "parallel/generate/schedule_registry.h"
#include "parallel/plan/exchange_scheme.h"
#include "parallel/plan/partition.h"
#include "parallel/repartition/layout_policy.h"

namespace concertina {
namespace {

constexpr double kInf = std::numeric_limits<double>::infinity();
constexpr Range kCount{1, 1 << 20};  // sizes and counts
constexpr Range kIndex{0, 1 << 20};  // 0 means "off" or "derived"
constexpr Range kSteps{0, 1e15};
constexpr Range kPositive{0, kInf, true};
constexpr Range kNotNegative{0, kInf};
constexpr Range kSeed{-1, kInf};
constexpr Range kShare{0, 1, false, true};  // [0, 1)

std::vector<std::string_view> list_of(const auto& names) {
  return {std::begin(names), std::end(names)};
}
std::vector<std::string_view> list_of(const decltype(kPrecisions)& precisions) {
  std::vector<std::string_view> names;
  for (const Precision& precision : precisions) names.push_back(name_of(precision));
  return names;
}
std::vector<std::string_view> with_auto(std::vector<std::string_view> names) {
  names.insert(names.begin(), "auto");
  return names;
}

/// The keys that each entry reads.
template <class T>
decltype(Key::reads) reads_of(std::span<const Entry<T>> table) {
  decltype(Key::reads) reads;
  for (const Entry<T>& entry : table) {
    auto& [name, keys] = reads.emplace_back(entry.name, list_of(entry.value.keys));
    if constexpr (requires { entry.value.files_key; }) keys.push_back(entry.value.files_key);
  }
  return reads;
}

/// Stores a string for the lifetime of the keys.
std::string_view keep(std::string text) {
  static std::deque<std::string> texts;
  return texts.emplace_back(std::move(text));
}

OptionValues& values_of(EntryOptions& all, std::string_view entry) {
  return all.find(entry)->second;
}
OptionValues& values_of(OptionValues& all, std::string_view /*entry*/) {
  return all;
}

/// The key for an option of a registry entry. `all` returns the option values of all entries.
template <class Options>
Key option_key(std::string name, const Option& one, std::string_view chooser,
               std::string_view entry, Options& (*all)(RunConfig& config)) {
  return {.name = keep(std::move(name)),
          .field =
              [all, entry, option = one.name](RunConfig& config) {
                return std::visit([](auto& value) -> KeyField { return &value; },
                                  values_of(all(config), entry).find(option)->second);
              },
          .meaning = one.help,
          .range = {one.low, one.high, one.above_low},
          .choices = one.choices,
          .chosen_by = chooser,
          .readers = {entry},
          .role = one.only_checks ? KeyRole::check : KeyRole::of_section};
}

enum class OptionsOf { own, shared };  // see sections.inc

/// Adds the options of a registry's entries as <section>.<entry>.<option>, or as <section>.<option>
/// if all entries share one table of values.
template <class T, class Options>
void add_options(std::vector<Key>& keys, std::string_view chooser, std::span<const Entry<T>> table,
                 Options& (*all)(RunConfig& config), OptionsOf whose) {
  for (const Entry<T>& entry : table)
    for (const Option& one : entry.value.options) {
      const std::string within =
          std::is_same_v<Options, EntryOptions> ? fmt::format(".{}", entry.name) : "";
      const std::string name =
          fmt::format("{}{}.{}", chooser.substr(0, chooser.find('.')), within, one.name);
      if (const auto known = std::ranges::find(keys, name, &Key::name); known != keys.end()) {
        known->readers.push_back(entry.name);
        continue;
      }
      Key& key = keys.emplace_back(option_key(name, one, chooser, entry.name, all));
      if (whose == OptionsOf::shared) continue;
      key.meaning = keep(fmt::format("{}: {}", entry.name, one.help));
      key.is_option = true;
    }
}

/// Adds to each key the choices that read it.
void link_readers(std::vector<Key>& keys) {
  for (const Key& chooser : keys)
    for (const auto& [choice, reads] : chooser.reads)
      for (const std::string_view name : reads) {
        const auto key = std::ranges::find(keys, name, &Key::name);
        CONCERTINA_CHECK(key != keys.end(), "{} reads {}, which is not a key", choice, name);
        key->chosen_by = chooser.name;
        key->readers.push_back(choice);
      }
}

std::vector<Key> all_keys() {
  using enum KeyRole;
  std::vector<Key> keys;
#define SECTION(name, Type, role)                    \
  {                                                  \
    constexpr std::string_view kSection = #name;     \
    constexpr Type Sections::*kOf = &Sections::name; \
    constexpr KeyRole kDefault = role;               \
    const std::size_t begin = keys.size();
#define KEY(type, key, default_value, help, ...)                                   \
  keys.push_back({.name = keep(fmt::format("{}.{}", kSection, #key)),              \
                  .field = [](RunConfig& c) -> KeyField { return &(c.*kOf).key; }, \
                  .meaning = help __VA_OPT__(, ) __VA_ARGS__});
#define OPTIONS(type, default_value, chooser, registry, whose)                          \
  add_options(                                                                          \
      keys, chooser, registry, +[](RunConfig& c) -> type& { return (c.*kOf).options; }, \
      OptionsOf::whose);
#define END()                                        \
  for (Key & key : std::span(keys).subspan(begin))   \
    if (key.role == of_section) key.role = kDefault; \
  }
#include "experiments/config/sections.inc"
  link_readers(keys);
  return keys;
}

std::string_view last_part(std::string_view key) {
  return key.substr(key.rfind('.') + 1);
}

std::string type_name(const KeyField& field) {
  constexpr const char* kNames[] = {"true or false",
                                    "an integer",
                                    "an integer",
                                    "a number",
                                    "a string",
                                    "a string or a list of strings",
                                    "a number or a list of numbers",
                                    "a list of two numbers",
                                    "an integer or a list of integers",
                                    "a size such as \"512 MiB\" or \"1.5 GB\", or 0",
                                    "a list of pipelines"};
  static_assert(std::size(kNames) == std::variant_size_v<KeyField>);
  return kNames[field.index()];
}

std::string bounds(const Range& range) {
  const bool low = range.low > -kInf, high = range.high < kInf;
  // {} prints all digits of 1048576; %g would hide digits that the user has to type.
  if (low && high && !range.open_low && !range.open_high)
    return fmt::format(" from {} to {}", range.low, range.high);
  std::string text;
  if (low) text += fmt::format(" {} {}", range.open_low ? ">" : ">=", range.low);
  if (high)
    text += fmt::format("{} {} {}", low ? " and" : "", range.open_high ? "<" : "<=", range.high);
  return text;
}

/// The value as text, without TOML quotes.
std::string bare_value(const Key& key, const RunConfig& config) {
  const auto* const text = value_if<std::string>(key, config);
  return text != nullptr ? *text : value_text(key, config);
}

}  // namespace

bool Range::contains(double value) const {
  const bool above = open_low ? value > low : value >= low;
  const bool below = open_high ? value < high : value <= high;
  return above && below;
}

const RunConfig& default_config() {
  static const RunConfig defaults;
  return defaults;
}

std::span<const Key> config_keys() {
  static const std::vector<Key> keys = all_keys();
  return keys;
}

KeyRole role_of(std::string_view name) {
  const Key* const key = find_key(name);
  return key == nullptr ? KeyRole::other : key->role;
}

const Key* find_key(std::string_view name) {
  const std::span<const Key> keys = config_keys();
  const auto key = std::ranges::find(keys, name, &Key::name);
  return key == keys.end() ? nullptr : &*key;
}

bool is_off(const Key& key, const RunConfig& config) {
  const std::string value = bare_value(key, config);
  return value.empty() || value == "none" || value == "never" || value == "0";
}

bool applies(const Key& key, const RunConfig& config) {
  if (key.chosen_by.empty()) return true;
  const Key& chooser = *find_key(key.chosen_by);
  if (key.readers.empty()) return !is_off(chooser, config);
  return std::ranges::find(key.readers, bare_value(chooser, config)) != key.readers.end();
}

const Key* unread(const Key& key, const RunConfig& config) {
  if (key.chosen_by.empty()) return nullptr;
  if (const Key* chooser = unread(*find_key(key.chosen_by), config)) return chooser;
  return applies(key, config) ? nullptr : &key;
}

bool is_default(const Key& key, const RunConfig& config) {
  return value_text(key, config) == value_text(key, default_config());
}

bool is_section(std::string_view name) {
  return !keys_of_section(name).empty();
}

bool is_table(std::string_view name) {
  return std::ranges::any_of(config_keys(), [&](const Key& key) {
    return key.name.starts_with(name) && key.name.substr(name.size()).starts_with('.');
  });
}

std::string keys_of_section(std::string_view section) {
  std::vector<std::string_view> names;
  for (const Key& key : config_keys())
    if (key.section() == section) names.push_back(key.within());
  return fmt::format("{}", fmt::join(names, ", "));
}

std::string nearest_key(std::string_view name) {
  std::string_view best;
  std::size_t distance = std::string_view::npos;
  for (const Key& key : config_keys()) {
    std::size_t candidate = edit_distance(name, key.name);
    // The most likely mistake is the right key in the wrong table, or without a table.
    if (last_part(key.name) == last_part(name)) candidate = std::min<std::size_t>(candidate, 1);
    if (candidate < distance) best = key.name, distance = candidate;
  }
  return is_slip(distance, name.size()) ? std::string(best) : std::string();
}

std::string expected(const Key& key) {
  if (!key.choices.empty())
    return fmt::format("{} of: {}{}", holds<std::vector<std::string>>(key) ? "one or more" : "one",
                       fmt::join(key.choices, ", "),
                       key.is_file == nullptr ? "" : ", or the path of a file or folder");
  std::string text = type_name(key.field_to_read(default_config()));
  if (holds<std::array<double, 2>>(key) || holds<std::vector<double>>(key))
    if (const std::string limits = bounds(key.range); !limits.empty())
      return text + ", each" + limits;
  return text + bounds(key.range);
}

std::string value_text(const Key& key, const RunConfig& config) {
  if (key.name == "parallel.layout" && config.parallel.layout.pipelines.empty()) return "[]";
  return visit_value(key, config, [](const auto& value) { return to_toml(value); });
}

std::string config_help() {
  std::string text, section;
  for (const Key& key : config_keys()) {
    if (key.section() != section) {
      section = key.section();
      text += fmt::format("{}[{}]\n", text.empty() ? "" : "\n", section);
    }
    text += fmt::format("  {} = {}\n      {}\n      {}\n", key.within(),
                        value_text(key, default_config()), key.meaning, expected(key));
  }
  return text;
}

}  // namespace concertina
