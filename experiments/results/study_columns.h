// The columns of a study's results, as tables, plots and reports ask for them: which there are,
// which way is better, and which trials have the same values in some of them.
// Invariants: trials are in the order of their numbers, whatever order they finished in; a column
// or value that no trial has is refused with those that there are.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/results/results.h"
#include "io/figure/chart.h"

namespace concertina {

struct MetricColumn {
  std::string name;
  BetterEnd better = BetterEnd::neither;
};

/// "loss", or "loss:min" and "loss:max" where the word says which way is better; the study's own
/// metric goes the way that the study has it, others as of name_of_figure(). Throws
/// Error{bad_input} if no trial has the column, or for another word after the colon.
MetricColumn metric_column(const StudyResults& results, const std::string& word);
/// The study's metric, else validation_loss; loss, tokens_per_s, median_step_ms, bubble,
/// peak_bytes: as far as some trial has them.
std::vector<MetricColumn> default_metrics(const StudyResults& results);

/// Whether the key says how a step is computed and not what: parallel.*, ranks, run.threads.
bool is_layout_key(const std::string& key);

/// Throws Error{bad_input} that names `option` if no trial has `column`.
void require_column(const StudyResults& results, const std::string& column, const char* option);
bool has_column(const StudyResults& results, const std::string& column);

/// What "COLUMN=VALUE" says.
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

/// Trials with the same values in some columns.
struct TrialGroup {
  std::vector<std::string> values;  // by column
  Trials done, others;              // others: failed, stopped, out of time, open
};
/// Groups in the order of the first trial of each.
std::vector<TrialGroup> groups_of(const Trials& trials, const std::vector<std::string>& columns);
/// All axes but run.seed and `pair`.
std::vector<std::string> default_groups(const StudyResults& results, const std::string& pair);

/// "parallel.schedule=zb-v run.seed=2".
std::string settings_text(const std::vector<std::string>& columns,
                          const std::vector<std::string>& values);

}  // namespace concertina
