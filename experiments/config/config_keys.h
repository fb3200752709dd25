// The one table of config keys: reading, checking, help and writing all come from it.
// Invariant: every field of RunConfig's sections, and every option of an entry of a registry, has
// exactly one row; sections.inc is where both come from.
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

/// A place in a RunConfig; its type is the key's type.
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

/// What a key decides, and so who may have another value: a resume, another rank, another trial.
enum class KeyRole : std::uint8_t {
  of_section,  // the role of most keys of its section
  other,       // it decides neither the bits of a run nor where things are
  numbers,     // it decides the bits: a resume with another value is refused
  changeable,  // it decides the bits, and a resume may change it
  files,       // it names data, whose content decides in its place
  check,       // it says which data is accepted, not what becomes of it
  run_name,    // it names the run
  run_place,   // where the run's files are: each host may have them elsewhere
  host_place,  // where a host has files of its own
  host,        // it suits a host
};

struct Key {
  std::string_view name{};  // "batch.global"
  std::function<KeyField(RunConfig& config)> field{};
  std::string_view meaning{};
  Range range{};                            // numbers only
  std::vector<std::string_view> choices{};  // strings only; empty: any text
  /// Strings with choices: whether a text names a file in place of a choice; null: none does.
  bool (*is_file)(const std::string& text) = nullptr;
  bool is_path = false;        // texts: paths outside the run directory
  std::string_view divides{};  // the key of the number that this one divides, unless it is 0
  /// Which other keys each choice reads; keys that no choice names are read whatever is chosen.
  std::vector<std::pair<std::string_view, std::vector<std::string_view>>> reads{};
  /// The other side of that: the key that decides whether this one is read, and the choices that
  /// read it; none: all that do not turn something off.
  std::string_view chosen_by{};
  std::vector<std::string_view> readers{};
  KeyRole role = KeyRole::of_section;
  bool is_option = false;  // of an entry of a registry

  /// As field(), of a config that must not be changed through it.
  KeyField field_to_read(const RunConfig& config) const {
    return field(const_cast<RunConfig&>(config));
  }
  std::string_view section() const { return name.substr(0, name.find('.')); }
  /// "global" of "batch.global", "llama.kv_heads" of "model.llama.kv_heads".
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

/// All keys, in order of sections. Options of freeze policies, model families, ... follow from
/// their registries: a new one needs nothing here.
std::span<const Key> config_keys();
/// Null if there is no such key.
const Key* find_key(std::string_view name);
/// The role of the key of that name; KeyRole::other if there is no such key.
KeyRole role_of(std::string_view name);
/// Whether the key has an effect: what chooses it reads it.
bool applies(const Key& key, const RunConfig& config);
/// The key whose chooser is why this one has no effect: itself, or what chooses it, ...; null: it
/// has one.
const Key* unread(const Key& key, const RunConfig& config);
/// Whether its value is one that turns something off: "none", "never", 0.
bool is_off(const Key& key, const RunConfig& config);
/// Whether its value is that of an empty config.
bool is_default(const Key& key, const RunConfig& config);
/// Whether a table of this name ("batch") exists.
bool is_section(std::string_view name);
/// Whether some key begins with this name and a dot ("model.llama").
bool is_table(std::string_view name);
/// The valid key closest to a mistyped one, by edit distance; empty if none is close.
std::string nearest_key(std::string_view name);
/// "global, microbatches" for "batch".
std::string keys_of_section(std::string_view section);

/// Describes the values of this key: "an integer from 1 to 1048576", "one of: cpu, cuda".
std::string expected(const Key& key);
/// The value in `config`, as TOML.
std::string value_text(const Key& key, const RunConfig& config);
/// All keys with type, default and meaning.
std::string config_help();

}  // namespace concertina
