// The results of a study as values: the settings of each trial, what came of it, and its columns.
// Invariants: pure values, read from the folder of a study by study_folder.h. Whatever compares
// trials in tables, charts or pages is in Python, which has them by `study trials --json`.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <variant>
#include <vector>

namespace concertina {

/// How a trial ended; `open`: it has not.
enum class TrialState { open, done, failed, timed_out, stopped };
const char* name_of(TrialState state);
/// Throws Error{bad_input} that names `where` for a word that name_of() does not give.
TrialState trial_state(const std::string& word, const std::string& where);

/// The settings of a trial: config keys (and "ranks"), in the order of the study's axes, with their
/// values as text ("zb-v", "0.001", "[0, 3]").
using Settings = std::vector<std::pair<std::string, std::string>>;

/// The metric of a trial after so many steps: where successive halving compares trials.
struct TrialRung {
  std::int64_t steps = 0;
  double metric = 0;
  bool operator==(const TrialRung&) const = default;
};

/// A trial, and what came of it.
struct TrialRecord {
  int number = 0;  // of the trial, from 1
  Settings settings{};
  TrialState state = TrialState::open;
  std::string error{};      // why it failed; empty where it did not
  std::string directory{};  // of its run, wherever the study is now; absent where no run began
  /// Numbers of result.json, those in tables as "recorded.bubble"; and seconds (of all launches of
  /// the trial by the study) and launches.
  std::map<std::string, double> figures{};
  /// Texts: layout, schedule, device, compute, isa, state_sha256 of result.json; version, commit,
  /// config_sha256, hosts, processor, libraries of its last launch.
  std::map<std::string, std::string> facts{};
  std::vector<TrialRung> rungs{};  // ascending; empty without successive halving
  std::string study{};             // study_digest() of the study that it is of
};

/// The levels of significance, and the margins, that tests accept.
inline constexpr double kLeastAlpha = 1e-6, kMostAlpha = 0.49, kMostMargin = 1e9;

/// What a study claims: that groups of trials are as good as their baseline in a metric.
struct EquivalenceClaim {
  std::string metric;
  double margin = 0, alpha = 0.05;
  std::vector<std::string> baseline{};  // "COLUMN=VALUE"s; none: the table's
  bool operator==(const EquivalenceClaim&) const = default;
};

struct StudyResults {
  std::string name, directory;
  std::string file;               // what the study was read from; empty: it is not on disk
  bool loose = false;             // runs that exist, which no study launched: trials only by name
  std::vector<std::string> axes;  // keys that differ between trials, in order; run.seed last
  std::vector<TrialRecord> trials;
  std::string metric;  // what the study minimises or maximises; empty: none was named
  bool minimise = true;
  std::optional<EquivalenceClaim> claim;  // of the study's file
  std::vector<std::int64_t> rung_steps;   // of successive halving, ascending
  std::vector<std::string> notes{};       // that a reader must see beside any of these figures
};

/// The setting that has the name of a loose run: as much of its path as tells it from the others.
inline constexpr const char* kRunColumn = "run";

/// A value of a trial: nothing, a number or a text.
using Cell = std::variant<std::monostate, double, std::string>;

/// The value of `column` in `trial`: of a setting (a number where its text is one), a figure, a
/// fact, or "trial", "state", "error"; nothing where the trial has none.
Cell cell_of(const TrialRecord& trial, const std::string& column);
/// All columns that some trial has, in order: trial, state, axes, figures, facts, error.
std::vector<std::string> columns_of(const StudyResults& results);
/// The text of a cell in results.csv: numbers with all their digits; empty if absent.
std::string cell_text(const Cell& cell);

/// "run.seed=1 parallel.schedule=zb-v".
std::string settings_text(const Settings& settings);

using Trials = std::vector<const TrialRecord*>;  // into StudyResults::trials

/// The fact of a run that has no config, such as one of another program.
inline constexpr const char* kNoConfig = "config";
/// The loss of held-out text that can be compared between tokenizers.
inline constexpr const char* kBitsPerByte = "validation_bits_per_byte";

/// Why the figures in `column` cannot be compared between those of `trials` that have one; empty:
/// they can. Figures that are not known to be of the same data, in the same unit, are not compared.
std::string why_unlike(const Trials& trials, const std::string& column);

}  // namespace concertina
