// Converts TOML nodes to values, with errors that give the location. Invariant: configs, studies
// and machine files are read only through this file, so that each error names the file, line,
// column, key and what is expected, including the nearest known name.
#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace concertina {

/// The name of a TOML text, and checked access to its nodes. `key` is a node's name for messages.
class TomlSource {
 public:
  /// `has_lines` is whether line numbers refer to a file, which is false for `--set`.
  explicit TomlSource(std::string name, bool has_lines = true)
      : name_(std::move(name)), has_lines_(has_lines) {}

  const std::string& name() const { return name_; }
  /// Returns "s.toml:3:10", or only the name if there is no line.
  std::string origin(const toml::node& node) const;
  /// Returns "s.toml:3:10: run.steps".
  std::string place(const toml::node& node, std::string_view key) const;
  std::string place(const toml::source_region& region, std::string_view key) const;

  [[noreturn]] void refuse(const toml::node& node, std::string_view key, std::string what,
                           std::string fix) const;
  [[noreturn]] void out_of_range(const toml::node& node, std::string_view key,
                                 std::string fix) const;

  // Checked accessors. Each throws if the node has a different type; `fix` is what is expected.
  bool truth(const toml::node& node, std::string_view key, const std::string& fix) const;
  std::int64_t whole(const toml::node& node, std::string_view key, const std::string& fix) const;
  double number(const toml::node& node, std::string_view key, const std::string& fix) const;
  const std::string& text(const toml::node& node, std::string_view key,
                          const std::string& fix = "text in quotes") const;
  const toml::array& list(const toml::node& node, std::string_view key,
                          const std::string& fix) const;
  const toml::table& table(const toml::node& node, std::string_view key,
                           const std::string& fix) const;
  // Checked accessors with inclusive bounds. NaN is out of bounds.
  std::int64_t whole(const toml::node& node, std::string_view key, std::int64_t low,
                     std::int64_t high) const;
  double number(const toml::node& node, std::string_view key, double low, double high) const;
  std::string choice(const toml::node& node, std::string_view key,
                     std::span<const std::string_view> words) const;

  /// Throws Error{bad_input} that shows the type and value of the node, such as "integer 3".
  [[noreturn]] void wrong_type(const toml::node& node, std::string_view key,
                               const std::string& fix) const;

 private:
  std::string name_;
  bool has_lines_;
};

/// Takes keys from a table by name and rejects those that were not taken.
class TomlTable {
 public:
  /// `path` is the table's name for messages; empty for the top level of a file.
  TomlTable(const TomlSource& source, const toml::node& node, std::string path);

  /// Returns null if the table does not have the key.
  const toml::node* take(std::string_view key);
  /// Returns "launch.jobs" for "jobs".
  std::string name(std::string_view key) const;
  /// Takes a key and, if it is present, calls `read` with its node and name.
  template <class Read>
  void take(std::string_view key, const Read& read) {
    if (const toml::node* node = take(key)) read(*node, name(key));
  }
  // Take a key and, if it is present, store its value, which must be within the bounds.
  void text(std::string_view key, std::string& out);
  void whole(std::string_view key, std::int64_t low, std::int64_t high, std::int64_t& out);
  void whole(std::string_view key, int low, int high, int& out);
  void number(std::string_view key, double low, double high, double& out);

  [[noreturn]] void refuse(std::string what, std::string fix) const;
  /// Throws Error{bad_input} for the first key that was not taken; names the nearest one that was.
  void finish() const;

 private:
  const TomlSource& source_;
  const toml::table& table_;
  std::string path_;
  std::vector<std::string_view> taken_;
};

struct TomlMember {
  std::string key;
  const toml::node* value = nullptr;
};
/// Returns the members in file order; the library sorts them by name.
std::vector<TomlMember> in_order(const toml::table& table);

/// Returns the value as TOML on one line.
std::string node_text(const toml::node& node);

/// Throws Error{bad_input} naming the position if `text` is not valid TOML.
toml::table parse_toml(std::string_view text, const TomlSource& source, const std::string& fix);

}  // namespace concertina
