// Whether two groups of trials differ in a figure: by trials that pair up where there are such.
// Invariant: pure.
#pragma once

#include <string>
#include <vector>

#include "experiments/results/statistics.h"
#include "experiments/results/study_columns.h"

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
};

/// The axes, without those in `by`, of which some group has several values.
std::vector<std::string> pooled_axes(const StudyResults& results,
                                     const std::vector<std::string>& by,
                                     const std::vector<TrialGroup>& groups);
/// `pair` (if it is run.seed and no trial has one: nothing) and the pooled axes. Throws
/// Error{bad_input} for another column of no trial, or for one that is a result.
std::vector<std::string> pairing_columns(const StudyResults& results, const std::string& pair,
                                         const std::vector<std::string>& by,
                                         const std::vector<TrialGroup>& groups);

/// The numbers of those trials that have one in `column`, finite or not.
std::vector<double> figures_of(const Trials& trials, const std::string& column);

}  // namespace concertina
