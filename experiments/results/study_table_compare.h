// Which groups of a table differ: from the baseline, and from the best.
// Invariant: pure; a p that is printed or judged is TableCell::p or of the best against all others,
// each corrected over the comparisons of its metric.
#pragma once

#include <string>
#include <vector>

#include "experiments/results/group_comparison.h"
#include "experiments/results/study_table.h"

namespace concertina {

/// What of the results a table is made of.
struct TableSource {
  const StudyResults& results;
  const TableOptions& options;
  std::vector<MetricColumn> metrics;
  std::vector<std::string> by;
  GroupComparison comparison;
  std::vector<TrialGroup> groups;
  std::vector<std::string> baseline;  // of the options, or the default one
};

/// What a table compares with if nothing was said: the first group, where a test is possible
/// (two groups of two trials at least), the groups are few and the study is no search; else
/// nothing.
std::vector<std::string> default_baseline(const TableSource& source);

/// Fills in differences, their p, and what the table says of them. `table.rows` are in the order of
/// `source.groups`. Returns a note on rows without a baseline; empty if there is none.
std::string compare_with_baseline(const TableSource& source, StudyTable& table);

/// Marks the best mean of each metric and those that cannot be told from it; a note where there are
/// such. `table.rows` as above, with differences.
std::vector<std::string> mark_best(const TableSource& source, StudyTable& table);

std::string short_title(const MetricColumn& metric);
/// "Schedule, Stages".
std::string listed_titles(const std::vector<std::string>& columns);

}  // namespace concertina
