// The results of a study as values: settings, outcome and columns of each trial. Invariant: pure
// values, read from a study's folder by study_folder.h. Tables, charts and pages compare them in
// Python, which reads them with `study trials --json`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace concertina {

/// The outcome of a trial; `open` if it has not finished.
enum class TrialState { open, done, failed, timed_out, stopped };
const char* name_of(TrialState state);
/// Throws Error{bad_input} that names `where` if `word` is not the name of a state.
TrialState trial_state(const std::string& word, const std::string& where);

/// The settings of a trial: config keys (and "ranks") in the order of the study's axes, with their
/// values as text ("zb-v", "0.001", "[0, 3]").
using Settings = std::vector<std::pair<std::string, std::string>>;

/// A trial's metric after a number of steps at which successive halving compares trials.
struct TrialRung {
  std::int64_t steps = 0;
  double metric = 0;
  bool operator==(const TrialRung&) const = default;
};

/// A trial and its outcome.
struct TrialRecord {
  int number = 0;  // from 1
  Settings settings{};
  TrialState state = TrialState::open;
  std::string error{};      // why the trial failed or ended early; empty otherwise
  std::string directory{};  // of its run, at the study's current place; empty without a run
  /// Numbers from result.json, named like "recorded.bubble" if in a nested object; also `seconds`
  /// (of all the study's launches of the trial) and `launches`.
  std::map<std::string, double> metrics{};
  /// Text values: layout, schedule, device, compute, isa, state_sha256 from result.json; version,
  /// commit, config_sha256, hosts, processor, libraries from the last launch.
  std::map<std::string, std::string> facts{};
  std::vector<TrialRung> rungs{};  // ascending; empty without successive halving
  std::string study{};             // study_digest() of its study
};

/// Significance levels and margins that tests accept.
inline constexpr double kLeastAlpha = 1e-6, kMostAlpha = 0.49, kMostMargin = 1e9;

/// A study's claim that groups of trials are equivalent to their baseline in a metric.
struct EquivalenceClaim {
  std::string metric;
  double margin = 0, alpha = 0.05;
  std::vector<std::string> baseline{};  // "COLUMN=VALUE"s; empty: the table's
  bool operator==(const EquivalenceClaim&) const = default;
};

struct StudyResults {
  std::string name, directory;
  std::string file;               // file of the study; empty: not on disk
  bool loose = false;             // existing runs not launched by a study
  std::vector<std::string> axes;  // keys that differ between trials, run.seed last
  std::vector<TrialRecord> trials;
  std::string metric;  // objective of the study; empty: none
  bool minimise = true;
  std::optional<EquivalenceClaim> claim;  // of the study's file
  std::vector<std::int64_t> rung_steps;   // of successive halving, ascending
  std::vector<std::string> notes{};       // shown wherever these results are
};

/// The setting that names a loose run: the shortest unique part of its path.
inline constexpr const char* kRunColumn = "run";

/// A trial's value: none, a number or a text.
using Cell = std::variant<std::monostate, double, std::string>;

/// The value of `column` in `trial`: a setting (as a number if its text is one), a metric, a fact,
/// or "trial", "state" or "error"; none if the trial lacks it.
Cell cell_of(const TrialRecord& trial, const std::string& column);
/// All columns that any trial has, in order: trial, state, axes, metrics, facts, error.
std::vector<std::string> columns_of(const StudyResults& results);
/// The text of a cell in results.csv: numbers with all digits, empty if absent.
std::string cell_text(const Cell& cell);

/// "run.seed=1 parallel.schedule=zb-v".
std::string settings_text(const Settings& settings);

using Trials = std::vector<const TrialRecord*>;  // into StudyResults::trials

/// The fact that marks a run without a config, such as one from another program.
inline constexpr const char* kNoConfig = "config";
/// A held-out loss that is comparable across tokenizers.
inline constexpr const char* kBitsPerByte = "validation_bits_per_byte";

/// Why the values in `column` are not comparable between the `trials` that have one; empty if they
/// are. Values are only compared if they are known to come from the same data and share a unit.
std::string why_incomparable(const Trials& trials, const std::string& column);

}  // namespace concertina
