// Which groups of trials differ in a figure: by trials that pair up where there are such; and in a
// table, from the baseline and from the best.
// Invariant: pure; a p that is printed or judged is TableCell::p or of the best against all others,
// each corrected over the comparisons of its metric.
#pragma once

#include <string>
#include <vector>

#include "experiments/results/results.h"
#include "experiments/results/statistics.h"
#include "experiments/results/study_table.h"

namespace concertina {

/// How groups are compared.
struct GroupComparison {
  std::vector<std::string> pairing;  // columns: trials with the same values there pair up
  SignificanceTest test = SignificanceTest::paired_t;  // of pairs
  double confidence = 0.95;

  /// `second` minus `first`. Of several trials of a group that have the same pairing values, their
  /// mean counts. Less than two pairs: Welch's test of all values.
  SampleDifference difference(const TrialGroup& first, const TrialGroup& second,
                              const std::string& metric) const;
  /// Why the groups cannot be compared in this metric; empty: they can. As of why_unlike().
  static std::string unlike(const TrialGroup& first, const TrialGroup& second,
                            const std::string& metric);
  /// The values of trials that pair up; none where groups are unlike, or where some of a time_to()
  /// never came: those that did would stand for all.
  std::vector<std::pair<double, double>> pairs(const TrialGroup& first, const TrialGroup& second,
                                               const std::string& metric) const;
};

/// How many trials of the group never came to the target of a time_to(); 0 of other metrics.
int never_came(const TrialGroup& group, const std::string& metric);

/// The axes, without those in `by`, of which some group has several values.
std::vector<std::string> pooled_axes(const StudyResults& results,
                                     const std::vector<std::string>& by,
                                     const std::vector<TrialGroup>& groups);
/// `pair` (if it is run.seed and no trial has one: nothing) and the pooled axes. Throws
/// Error{bad_input} for another column of no trial, or for one that is a result.
std::vector<std::string> pairing_columns(const StudyResults& results, const std::string& pair,
                                         const std::vector<std::string>& by,
                                         const std::vector<TrialGroup>& groups);

/// The part of the results that a table is made of.
struct TableSource {
  const StudyResults& results;
  const TableOptions& options;
  std::vector<MetricColumn> metrics;
  std::vector<std::string> by;
  GroupComparison comparison{};
  std::vector<TrialGroup> groups{};
  std::vector<std::string> baseline{};  // of the options, of the claim, or the default one
  std::optional<EquivalenceClaim> claim{};
};

/// The baseline of a table whose options name none: the first group, where a test is possible
/// (two groups of two trials at least), the groups are few and the study is no search; else
/// nothing.
std::vector<std::string> default_baseline(const TableSource& source);

/// The baseline of each row; nothing for baselines themselves and where there is none.
struct Baselines {
  std::vector<std::optional<std::size_t>> of_row;
  std::vector<std::string> without;  // the rows that have none
};
/// Marks the rows of the table that are baselines, too.
Baselines find_baselines(const TableSource& source, StudyTable& table);

/// Fills in differences, their p, what the claim's tests say, and what the table says of them.
/// `table.rows` are in the order of `source.groups`. Returns a note on rows without a baseline;
/// empty if there is none.
std::string compare_with_baseline(const TableSource& source, StudyTable& table);

/// Marks the best mean of each metric and those that cannot be told from it; a note where there are
/// such. `table.rows` as above, with differences.
std::vector<std::string> mark_best(const TableSource& source, StudyTable& table);

}  // namespace concertina
