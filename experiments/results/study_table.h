// The table of a study: a row per group of trials, for each metric its mean, spread and difference
// to a baseline, and what a reader must know beside; of a study that halves its trials, what that
// did. Invariants: pure; the same results give the same bytes, whatever order trials finished in; a
// trial that did not end well, or a value that is not finite, is named and never averaged.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "experiments/results/results.h"
#include "experiments/results/statistics.h"

namespace concertina {

/// A step at which successive halving compares trials, and what it did there. A metric that is not
/// finite counts as stopped and is in no range.
struct SearchRung {
  std::int64_t steps = 0;
  int reached = 0, stopped = 0;  // trials that came here, and that ended here without the rest
  std::optional<double> best{};  // of those that reached it
  std::optional<double> left_best{}, left_worst{};  // of those that stopped here
};

/// The course of a search that halves the trials of a study, and its cost beside the whole grid.
struct SearchCourse {
  std::string metric;
  std::vector<SearchRung> rungs{};  // ascending
  int trials = 0;
  int best = 0;  // the trial with the best metric at the last rung; 0: none is there
  double best_metric = 0;
  Settings best_settings{};
  std::int64_t steps_run = 0, steps_of_all = 0;  // up to rungs; if all trials had run to their end

  double cost() const {  // of the whole grid
    return steps_of_all > 0 ? static_cast<double>(steps_run) / static_cast<double>(steps_of_all)
                            : 0;
  }
};

/// "successive halving by Validation loss: the best of 9 trials is trial 6 ...", and what it cost.
std::vector<std::string> search_lines(const SearchCourse& course);
/// Head and lines of a table: step, trials, stopped, best, metric of those that stopped.
std::vector<std::vector<std::string>> rung_rows(const SearchCourse& course);
nlohmann::ordered_json to_json(const SearchCourse& course);

/// A group of a front.
struct FrontPoint {
  std::string name;
  bool baseline = false;
  int pairs = 0;
  /// How many times as good as the baseline, the geometric mean of pairs: of times, how many times
  /// as fast. 1 of the baseline itself. The ends of its interval from two pairs on.
  std::optional<double> gain{}, gain_low{}, gain_high{};
  /// Minus the baseline, paired, with its interval; 0 of the baseline itself.
  std::optional<double> change{}, change_low{}, change_high{};
  std::optional<Equivalence> equivalence{};  // where there is a claim on that metric
  bool on_front = false;                     // no other group is as good in both, better in one
};

/// What groups gain over their baseline in one figure, and what it costs them in another, in the
/// order of the table's rows.
struct StudyFront {
  MetricColumn gain, change;
  double confidence = 0.95;         // of the intervals of gains
  double change_confidence = 0.95;  // 1 - 2 alpha where there is a claim on that metric
  std::vector<FrontPoint> points{};
  /// The first group that is not shown to be as good as the baseline: by the claim's tests; without
  /// a claim, the first whose interval lies on the worse side of zero.
  std::optional<std::size_t> loss_begins{};
};
nlohmann::ordered_json to_json(const StudyFront& front);
nlohmann::ordered_json to_json(const Equivalence& result);

/// How the p values of one metric allow for being several.
enum class PCorrection { none, holm };
/// Throws Error{bad_input} for a word that is neither.
PCorrection p_correction(const std::string& word);

struct TableOptions {
  std::vector<std::string> metrics{};  // as of metric_column(); none: default_metrics()
  std::vector<std::string> by{};       // columns that make groups; none: default_groups()
  /// "COLUMN=VALUE"s of `by`; none: as of default_baseline(); {"none"}: no differences.
  std::vector<std::string> baseline{};
  std::string pair = "run.seed";  // trials of two groups with the same value there are compared
  double confidence = 0.95;       // of intervals; a p below 1 - confidence is significant
  SignificanceTest test_of_pairs = SignificanceTest::paired_t;  // or wilcoxon
  PCorrection correction = PCorrection::holm;
  std::vector<std::string> where{};  // as of chosen_trials()
  std::string sort{};  // a metric, best first, or a column of `by`; empty: in the order of trials
  bool mixed = false;  // provenance_notes()
  bool notes = true, contests = true;  // contests: notes on what cannot be told from the best
  /// What the tests of equivalence are of; none: what the study's file claims.
  std::optional<EquivalenceClaim> claim{};
  /// As of metric_column(): the figure whose gain, and the one whose loss, a front has. Or none.
  std::vector<std::string> front{};
};

/// A metric of a group. Of n = 1 there is neither sd nor interval.
struct TableCell {
  SampleSummary summary;
  int missing = 0;  // trials that have no such figure
  int never = 0;    // trials that did not come to the target: there is no mean then
  bool best = false;
  bool like_best = false;                      // not the best, and not significantly worse
  std::optional<SampleDifference> difference;  // to the baseline's group
  std::optional<double> p;  // of the difference, corrected: what is printed and judged
  std::optional<Equivalence> equivalence{};  // to the baseline's group, of the claim's metric
};

struct TableRow {
  std::vector<std::string> group;  // values of StudyTable::by
  std::vector<int> trials;         // that are done, of which the cells are
  int others = 0;                  // that are not
  bool baseline = false;
  std::vector<TableCell> cells{};  // by metric
};

struct StudyTable {
  std::string study;
  bool loose = false;  // StudyResults::loose
  std::vector<std::string> by;
  std::vector<MetricColumn> metrics;
  double confidence = 0.95;
  std::vector<TableRow> rows{};
  std::string baseline{};    // "1f1b"; empty: no differences
  std::string comparison{};  // how groups were compared: "paired t test over 3 pairs of ..."
  std::vector<std::string> notes{};
  bool with_notes = true;                // else table_notes() has none
  std::vector<TrialRecord> not_done{};   // of the chosen trials
  std::optional<SearchCourse> search{};  // of successive halving, over all trials of the study
  std::optional<EquivalenceClaim> claim{};
  bool claim_in_file = false;  // of the study, its baseline too
  std::optional<StudyFront> front{};

  bool significant(std::optional<double> p) const { return p && *p < 1 - confidence; }
};

/// A row's baseline is the row that has the baseline's values and else its own: with
/// parallel.schedule=1f1b a group of pp = 2 is compared with 1f1b at pp = 2. Trials pair up that
/// have the same values in `pair` and in the axes of which a group has several (of several such
/// trials in a group, their mean counts); where less than two pairs are found, Welch's test
/// compares the groups. Of successive halving, groups of stopped trials alone are no rows. p values
/// are corrected over the comparisons of one metric with the baseline; likewise those of the best
/// group with all others. Throws Error{bad_input} for unknown columns and values, and for
/// provenance_notes().
StudyTable make_table(const StudyResults& results, const TableOptions& options);

/// Trials that ended alike, without being done.
struct CommonEnd {
  TrialState state = TrialState::open;
  std::string error;
  Trials trials;  // into StudyTable::not_done
};
/// The ends of the trials that are not done, in the order of the first trial of each; open ones
/// last.
std::vector<CommonEnd> ends_of(const StudyTable& table);

/// The contents of a cell: mean and standard deviation; mean and interval; mean, deviation and the
/// difference to the baseline; all of that.
enum class TableCells { mean_sd, mean_ci, difference, full };
/// Throws Error{bad_input} for a word that is none of mean-sd, mean-ci, difference, full.
TableCells table_cells_kind(const std::string& word);

enum class TableFormat { text, csv, markdown, latex, html };
/// Throws Error{bad_input} for a word that is none of these.
TableFormat table_format(const std::string& word);
/// The whole table with notes and the trials that are not done; CSV has the rows alone, with all
/// digits, and needs table_notes() beside it.
std::string table_text(const StudyTable& table, TableFormat format, TableCells cells);
/// The whole of each cell as text; mean and deviation in the markup of other programs.
TableCells default_cells(TableFormat format);
std::string table_csv(const StudyTable& table);
/// Returns one line per note, then the trials that are not done, with reasons.
std::vector<std::string> table_notes(const StudyTable& table, TableCells cells);
nlohmann::ordered_json to_json(const StudyTable& table);

}  // namespace concertina
