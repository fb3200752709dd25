// From a node of a TOML text to a value, or to an error that says where the node stands.
// Invariant: configs, studies and machine files are read through this alone, so that each error
// names file, line, column and key, and what would be right, with the nearest name there is.
#pragma once

#include <toml++/toml.h>

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace concertina {

/// A text's name, and the values and errors of its nodes. `key` is a node's name for people.
class TomlSource {
 public:
  /// `has_lines`: whether lines of nodes are those of a file; they are not for `--set`.
  explicit TomlSource(std::string name, bool has_lines = true)
      : name_(std::move(name)), has_lines_(has_lines) {}

  const std::string& name() const { return name_; }
  /// "s.toml:3:10", or the name alone for what has no line.
  std::string origin(const toml::node& node) const;
  /// "s.toml:3:10: run.steps".
  std::string place(const toml::node& node, std::string_view key) const;
  std::string place(const toml::source_region& region, std::string_view key) const;

  [[noreturn]] void refuse(const toml::node& node, std::string_view key, std::string what,
                           std::string fix) const;
  [[noreturn]] void out_of_range(const toml::node& node, std::string_view key,
                                 std::string fix) const;

  // Values. Each refuses a node of another type; `fix`: what would be right.
  bool truth(const toml::node& node, std::string_view key, const std::string& fix) const;
  std::int64_t whole(const toml::node& node, std::string_view key, const std::string& fix) const;
  double number(const toml::node& node, std::string_view key, const std::string& fix) const;
  const std::string& text(const toml::node& node, std::string_view key,
                          const std::string& fix = "text in quotes") const;
  const toml::array& list(const toml::node& node, std::string_view key,
                          const std::string& fix) const;
  const toml::table& table(const toml::node& node, std::string_view key,
                           const std::string& fix) const;
  // Values within bounds, which belong to them; NaN is none of them.
  std::int64_t whole(const toml::node& node, std::string_view key, std::int64_t low,
                     std::int64_t high) const;
  double number(const toml::node& node, std::string_view key, double low, double high) const;
  std::string choice(const toml::node& node, std::string_view key,
                     std::span<const std::string_view> words) const;

  /// "integer 3", as errors have it.
  [[noreturn]] void wrong_type(const toml::node& node, std::string_view key,
                               const std::string& fix) const;

 private:
  std::string name_;
  bool has_lines_;
};

/// Takes the keys out of one table by name, and refuses those that nobody took.
class TomlTable {
 public:
  /// `path`: the table's name for people; empty for the top of a file.
  TomlTable(const TomlSource& source, const toml::node& node, std::string path);

  /// Null if the table has no such key.
  const toml::node* take(std::string_view key);
  /// "launch.jobs" for "jobs".
  std::string name(std::string_view key) const;
  /// Takes a key, and gives its node and name to `read` if there is one.
  template <class Read>
  void take(std::string_view key, const Read& read) {
    if (const toml::node* node = take(key)) read(*node, name(key));
  }
  // The same for values within bounds, if they are there.
  void text(std::string_view key, std::string& out);
  void whole(std::string_view key, std::int64_t low, std::int64_t high, std::int64_t& out);
  void whole(std::string_view key, int low, int high, int& out);
  void number(std::string_view key, double low, double high, double& out);

  [[noreturn]] void refuse(std::string what, std::string fix) const;
  /// Throws Error{bad_input} for the first key that was not taken, with the nearest that was.
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
/// As in the file: tables of the library are sorted by name.
std::vector<TomlMember> in_order(const toml::table& table);

/// The value as TOML, in one line.
std::string node_text(const toml::node& node);

/// Throws Error{bad_input} with the place for what is no TOML.
toml::table parse_toml(std::string_view text, const TomlSource& source, const std::string& fix);

}  // namespace concertina
