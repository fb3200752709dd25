// The results of a study as values: what each trial was told, what came of it, and the columns by
// which tables, plots and reports ask for both.
// Invariants: pure values. They are read from a study's folder by study_folder.h and made by hand
// in tests; tables, plots and reports see nothing else. Chosen trials are in the order of their
// numbers, whatever order they finished in; a column or value that no trial has is refused with
// those that there are.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "experiments/results/equivalence.h"
#include "io/figure/chart.h"

namespace concertina {

/// How a trial ended; `open`: it has not.
enum class TrialState { open, done, failed, timed_out, stopped };
const char* name_of(TrialState state);
/// Throws Error{bad_input} that names `where` for a word that name_of() does not give.
TrialState trial_state(const std::string& word, const std::string& where);

/// The settings of a trial: config keys (and "ranks"), in the order of the study's axes, with their
/// values as text ("zb-v", "0.001", "[0, 3]").
using Settings = std::vector<std::pair<std::string, std::string>>;

struct TrialRecord {
  int number = 0;  // of the trial, from 1
  Settings settings;
  TrialState state = TrialState::open;
  std::string error;      // why it failed; empty where it did not
  std::string directory;  // of its run, wherever the study is now; absent where no run began
  /// Numbers of result.json, those in tables as "recorded.bubble"; and seconds (of all launches of
  /// the trial by the study) and launches.
  std::map<std::string, double> figures;
  /// Texts: layout, schedule, device, compute, isa, state_sha256 of result.json; version, commit,
  /// config_sha256, hosts, processor, libraries of its last launch.
  std::map<std::string, std::string> facts;
};

/// The metric of a trial after so many steps: where successive halving compares trials.
struct TrialRung {
  std::int64_t steps = 0;
  double metric = 0;
  bool operator==(const TrialRung&) const = default;
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
  /// Successive halving has rungs: their steps, ascending, and what each trial had at those that it
  /// reached. Other studies leave both empty.
  std::vector<std::int64_t> rung_steps;
  std::map<int, std::vector<TrialRung>> rungs;
  bool with_stopped = false;         // include_stopped()
  std::vector<std::string> notes{};  // that a reader must see beside any of these figures
};

/// The setting that has the name of a loose run: as much of its path as tells it from the others.
inline constexpr const char* kRunColumn = "run";

/// Lets trials that a search has stopped count as done, with the figures of the steps that they
/// did, and notes which; the course of the search is left out then.
void include_stopped(StudyResults& results);

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

struct MetricColumn {
  std::string name;
  BetterEnd better = BetterEnd::neither;
};

/// "loss", or "loss:min" and "loss:max" where the word says which way is better; the study's own
/// metric goes the way that the study has it, others as of name_of_figure(). Throws
/// Error{bad_input} if no trial has the column, or for another word after the colon.
MetricColumn metric_column(const StudyResults& results, const std::string& word);
/// validation_bits_per_byte where trials differ in the tokenizer; the study's metric, else
/// validation_loss; what the task counts, such as validation_accuracy; loss, tokens_per_s,
/// median_step_ms, bubble, peak_bytes: as far as some trial has them.
std::vector<MetricColumn> default_metrics(const StudyResults& results);

/// Whether the key says how a step is computed and not what: parallel.*, ranks, run.threads.
bool is_layout_key(const std::string& key);

/// Throws Error{bad_input} that names `option` if no trial has `column`.
void require_column(const StudyResults& results, const std::string& column, const char* option);
bool has_column(const StudyResults& results, const std::string& column);

/// The parts of "COLUMN=VALUE".
struct ColumnValue {
  std::string column, value;
};
/// Throws Error{bad_input} that names `option` for a text without '=' or a column of no trial.
ColumnValue column_value(const StudyResults& results, const std::string& text, const char* option);
/// A number where the text is one.
Cell cell_of_setting(const std::string& text);
/// Whether the cell's text is `value`, or both are the same number.
bool same_value(const Cell& cell, const std::string& value);

/// The number in `column`; nothing where the trial has none. Throws Error{bad_input} if the trial
/// has a text there.
std::optional<double> number_of(const TrialRecord& trial, const std::string& column);

using Trials = std::vector<const TrialRecord*>;  // into StudyResults::trials
/// The trials that have all of these "COLUMN=VALUE"; several values of one column: any of them.
Trials chosen_trials(const StudyResults& results, const std::vector<std::string>& where);
std::vector<int> numbers_of(const Trials& trials);
/// The texts of `column`, each once, in the order of trials.
std::vector<std::string> values_in(const Trials& trials, const std::string& column);
/// The numbers of those trials that have one in `column`, finite or not.
std::vector<double> figures_of(const Trials& trials, const std::string& column);

/// Trials with the same values in some columns.
struct TrialGroup {
  std::vector<std::string> values;  // by column
  Trials done, others;              // others: failed, stopped, out of time, open
};
/// Groups in the order of the first trial of each.
std::vector<TrialGroup> groups_of(const Trials& trials, const std::vector<std::string>& columns);
/// All axes but run.seed and `pair`.
std::vector<std::string> default_groups(const StudyResults& results, const std::string& pair);

/// A name as short as a legend needs it: "zb-v pp=2" for parallel.schedule and parallel.pp.
std::string group_label(const std::vector<std::string>& columns,
                        const std::vector<std::string>& values);
/// "Step time" of median_step_ms; "Schedule, Stages" of several columns.
std::string short_title(const MetricColumn& metric);
std::string listed_titles(const std::vector<std::string>& columns);

/// The position of `word` among `words`. Throws Error{bad_input} that says `wrong` and the nearest
/// of them if it is none.
std::size_t index_of(const std::string& word, std::span<const std::string_view> words,
                     const std::string& wrong, const char* option);

/// "parallel.schedule=zb-v run.seed=2".
std::string settings_text(const std::vector<std::string>& columns,
                          const std::vector<std::string>& values);

}  // namespace concertina
