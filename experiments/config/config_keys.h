// The table of all config keys, used to read, check, document and write configs. Invariant: every
// field of RunConfig's sections, and every option of a registry entry, has exactly one row. Both
// are generated from sections.inc.
#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <limits>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <variant>
#include <vector>

#include "experiments/config/config.h"

namespace concertina {

/// Pointer to a field of a RunConfig; its type is the key's type.
using KeyField =
    std::variant<bool*, int*, std::int64_t*, double*, std::string*, std::vector<std::string>*,
                 std::vector<double>*, std::array<double, 2>*, std::vector<std::int64_t>*,
                 ByteSize*, Layout*>;

/// The range of a number; an open end excludes the bound itself.
struct Range {
  double low = -std::numeric_limits<double>::infinity();
  double high = std::numeric_limits<double>::infinity();
  bool open_low = false, open_high = false;

  bool contains(double value) const;
};

/// What a key affects, and therefore whether a resume, another rank or another trial may change it.
enum class KeyRole : std::uint8_t {
  of_section,  // the usual role of keys in its section
  other,       // affects neither the bits of a run nor the location of its files
  numbers,     // affects the bits: a resume with a different value is refused
  changeable,  // affects the bits, but a resume may change it
  files,       // names data; the contents matter, not the name
  check,       // determines which data is accepted, not how it is used
  run_name,    // the name of the run
  run_place,   // a location for the run's files, which may differ by host
  host_place,  // a location for files that are private to a host
  host,        // a setting that depends on the host
};

struct Key {
  std::string_view name{};  // "batch.global"
  std::function<KeyField(RunConfig& config)> field{};
  std::string_view meaning{};
  Range range{};                            // numbers only
  std::vector<std::string_view> choices{};  // of a string, or of each in a list; empty: any
  /// For strings with choices: whether a string names a file instead; null if files are invalid.
  bool (*is_file)(const std::string& text) = nullptr;
  bool is_path = false;        // strings: paths outside the run directory
  std::string_view divides{};  // the key whose value this one must divide, unless it is 0
  /// Which other keys each choice reads. A key that no choice lists is always read.
  std::vector<std::pair<std::string_view, std::vector<std::string_view>>> reads{};
  /// The inverse of `reads`: the key that decides whether this one is read, and its choices that
  /// read this one. If `readers` is empty, these are all choices that do not turn something off.
  std::string_view chosen_by{};
  std::vector<std::string_view> readers{};
  KeyRole role = KeyRole::of_section;
  bool is_option = false;  // an option of a registry entry

  /// Like field(), for a config that must not be modified through it.
  KeyField field_to_read(const RunConfig& config) const {
    return field(const_cast<RunConfig&>(config));
  }
  std::string_view section() const { return name.substr(0, name.find('.')); }
  /// "global" for "batch.global", "llama.kv_heads" for "model.llama.kv_heads".
  std::string_view within() const { return name.substr(name.find('.') + 1); }
};

/// A config in which no key is set.
const RunConfig& default_config();

/// Calls `visit` with the value of a key in `config`.
template <class Visit>
decltype(auto) visit_value(const Key& key, const RunConfig& config, const Visit& visit) {
  const KeyField field = key.field_to_read(config);
  return std::visit([&](const auto* value) -> decltype(auto) { return visit(*value); }, field);
}
/// The value of a key in `config`; null if it is not of type T.
template <class T>
const T* value_if(const Key& key, const RunConfig& config) {
  const KeyField field = key.field_to_read(config);
  T* const* const value = std::get_if<T*>(&field);
  return value == nullptr ? nullptr : *value;
}
/// Whether the values of a key are of type T.
template <class T>
bool holds(const Key& key) {
  return value_if<T>(key, default_config()) != nullptr;
}

/// All keys, in section order. Options of freeze policies, model families, ... come from their
/// registries.
std::span<const Key> config_keys();
/// Null if there is no such key.
const Key* find_key(std::string_view name);
/// The role of the key with that name; KeyRole::other if there is no such key.
KeyRole role_of(std::string_view name);
/// Whether the key has an effect, that is, whether the value of chosen_by reads it.
bool applies(const Key& key, const RunConfig& config);
/// Why the key has no effect: the key itself, or a chooser above it, that is not read because of
/// the value of its own chooser. Null if the key has an effect.
const Key* unread(const Key& key, const RunConfig& config);
/// Whether the key is set to a value that turns something off: "none", "never", 0.
bool is_off(const Key& key, const RunConfig& config);
/// Whether the key has its default value.
bool is_default(const Key& key, const RunConfig& config);
/// Whether a table of this name ("batch") exists.
bool is_section(std::string_view name);
/// Whether some key begins with this name and a dot ("model.llama").
bool is_table(std::string_view name);
/// The valid key closest to a mistyped one, by edit distance; empty if none is close.
std::string nearest_key(std::string_view name);
/// "global, microbatches" for "batch".
std::string keys_of_section(std::string_view section);

/// Describes the valid values of a key: "an integer from 1 to 1048576", "one of: cpu, cuda".
std::string expected(const Key& key);
/// The key's value in `config`, as TOML.
std::string value_text(const Key& key, const RunConfig& config);
/// Text that lists all keys with their defaults, meanings and values.
std::string config_help();

}  // namespace concertina
