// What varies in a study: its tables of config keys ([set], [grid], [[zip]], [random]) and seeds.
// Invariant: each value passed the checks of its config key where it stands in the file.
#pragma once

#include <functional>
#include <set>
#include <string>

#include "experiments/study/study_spec.h"
#include "io/toml_reader.h"

namespace concertina {

/// Reads the nodes into a spec; each throws Error{bad_input} with the place of what is wrong.
class AxesReader {
 public:
  AxesReader(const TomlSource& source, StudySpec& spec) : source_(source), spec_(spec) {}

  /// `section`: set, or override, whose values stand in place of those of set.
  void set(const toml::node& node, const std::string& section);
  void grid(const toml::node& node);
  void zips(const toml::node& node);
  void random(const toml::node& node);
  void seeds(const toml::node& node);
  /// Refuses keys that are said twice, too many trials, and axes that nobody would run.
  void finish() const;

 private:
  using Take = std::function<void(const std::string& key, const toml::node& value)>;

  /// Calls `take` for each config key of a table, but for the names in `others`.
  void config_keys(const toml::node& node, const std::string& section, const Take& take,
                   const std::set<std::string>& others = {}) const;
  /// `path`: of a table of dotted keys; empty for the section's own.
  void keys_below(const toml::table& table, const std::string& path, const Take& take,
                  const std::set<std::string>& others) const;
  /// A value of a config key, or of kRanksKey, as text; it is checked as the config checks it.
  std::string setting(const std::string& key, const toml::node& node) const;
  const toml::array& values(const std::string& key, const toml::node& node) const;
  void zip(const toml::node& node);
  void add_axis(const toml::node& node, Axis axis);
  Draw draw(const std::string& key, const toml::node& node) const;
  void draw_ends(const std::string& kind, const toml::node& ends, const std::string& fix,
                 Draw& draw) const;
  void once(const std::string& key, const toml::node& node);

  const TomlSource& source_;
  StudySpec& spec_;
  std::set<std::string> varied_;
};

}  // namespace concertina
