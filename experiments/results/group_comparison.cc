#include "experiments/results/group_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>

#include "core/error.h"

namespace concertina {
namespace {

using PairedValues = std::map<std::vector<std::string>, double>;

/// The finite mean of `metric` per value of the pairing columns.
PairedValues paired_values(const GroupComparison& comparison, const TrialGroup& group,
                           const std::string& metric) {
  PairedValues values;
  if (comparison.pairing.empty()) return values;
  for (const TrialGroup& same : groups_of(group.done, comparison.pairing)) {
    const SampleSummary summary = summarize(figures_of(same.done, metric), comparison.confidence);
    if (summary.n > 0) values[same.values] = summary.mean;
  }
  return values;
}

/// Whether the column is a figure that came of a trial; some figures say what it was told.
bool is_outcome(const StudyResults& results, const std::string& column) {
  constexpr std::array kTold = {"seed", "ranks", "batch", "microbatches"};
  if (std::ranges::find(kTold, column) != kTold.end()) return false;
  return std::ranges::any_of(results.trials, [&](const TrialRecord& trial) {
    return trial.figures.contains(column) &&
           std::ranges::none_of(trial.settings, [&](const auto& s) { return s.first == column; });
  });
}

}  // namespace

SampleDifference GroupComparison::difference(const TrialGroup& first, const TrialGroup& second,
                                             const std::string& metric) const {
  const PairedValues a = paired_values(*this, first, metric);
  const PairedValues b = paired_values(*this, second, metric);
  std::vector<std::pair<double, double>> pairs;
  for (const auto& [key, value] : a)
    if (const auto other = b.find(key); other != b.end()) pairs.emplace_back(value, other->second);
  if (pairs.size() >= 2) return compare_pairs(pairs, test, confidence);
  return compare_samples(figures_of(first.done, metric), figures_of(second.done, metric),
                         confidence);
}

std::vector<std::string> pooled_axes(const StudyResults& results,
                                     const std::vector<std::string>& by,
                                     const std::vector<TrialGroup>& groups) {
  std::vector<std::string> axes;
  for (const std::string& axis : results.axes)
    if (std::ranges::find(by, axis) == by.end() &&
        std::ranges::any_of(groups, [&](const TrialGroup& group) {
          return groups_of(group.done, {axis}).size() > 1;
        }))
      axes.push_back(axis);
  return axes;
}

std::vector<std::string> pairing_columns(const StudyResults& results, const std::string& pair,
                                         const std::vector<std::string>& by,
                                         const std::vector<TrialGroup>& groups) {
  if (pair != "run.seed") require_column(results, pair, "--pair");
  if (is_outcome(results, pair))
    throw_input(fmt::format("trials cannot pair up by '{}': it is a result, not a setting", pair),
                "--pair",
                results.axes.empty() ? "run.seed"
                                     : fmt::format("one of: {}", fmt::join(results.axes, ", ")));
  std::vector<std::string> columns;
  if (has_column(results, pair) && std::ranges::find(by, pair) == by.end()) columns.push_back(pair);
  for (const std::string& axis : pooled_axes(results, by, groups))
    if (axis != pair) columns.push_back(axis);
  return columns;
}

std::vector<double> figures_of(const Trials& trials, const std::string& column) {
  std::vector<double> values;
  for (const TrialRecord* trial : trials)
    if (const auto value = number_of(*trial, column)) values.push_back(*value);
  return values;
}

}  // namespace concertina
