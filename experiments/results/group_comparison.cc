#include "experiments/results/group_comparison.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <map>
#include <set>

#include "core/error.h"
#include "core/nearest.h"
#include "core/number_text.h"
#include "experiments/results/figure_names.h"
#include "experiments/results/measures.h"
#include "experiments/results/study_table_text.h"

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

constexpr std::size_t kMostCompared = 12;  // groups that are compared without being asked
constexpr std::size_t kMostNamed = 4;      // groups in a note

/// The values that the baseline has in columns of `by`, by position there.
std::map<std::size_t, std::string> baseline_values(const TableSource& source) {
  std::map<std::size_t, std::string> wanted;
  for (const std::string& text : source.baseline) {
    const ColumnValue value = column_value(source.results, text, "--baseline");
    const auto at = std::ranges::find(source.by, value.column);
    if (at == source.by.end())
      throw_input(fmt::format("the baseline names {}, which makes no groups", value.column),
                  "--baseline",
                  source.by.empty() ? "--by " + value.column
                                    : fmt::format("one of: {}", fmt::join(source.by, ", ")));
    const auto column = static_cast<std::size_t>(at - source.by.begin());
    std::set<std::string> known;
    for (const TrialGroup& group : source.groups) known.insert(group.values[column]);
    const auto found = std::ranges::find_if(known, [&](const std::string& text_of_group) {
      return text_of_group == value.value ||
             same_value(cell_of_setting(text_of_group), value.value);
    });
    const std::vector<std::string_view> words(known.begin(), known.end());
    if (found == known.end())
      throw_input(fmt::format("no group has {}={}", value.column, value.value), "--baseline",
                  one_of(nearest_word(value.value, words), words));
    wanted[column] = *found;
  }
  return wanted;
}

/// Writes to each of these p what is to be printed.
void correct(const std::vector<std::optional<double>*>& values, PCorrection correction) {
  if (correction == PCorrection::none) return;
  std::vector<double> p;
  for (const auto* value : values) p.push_back(value->value());
  p = holm(p);
  for (std::size_t i = 0; i < values.size(); ++i) *values[i] = p[i];
}

/// "paired t test over 3 pairs of the same Seed; two-sided p, Holm's correction over 2
/// comparisons".
std::string comparison_text(const TableSource& source, const StudyTable& table) {
  std::set<int> pairs;
  std::set<SignificanceTest> used;
  std::size_t most = 0;  // comparisons of a metric
  for (std::size_t m = 0; m < table.metrics.size(); ++m) {
    std::size_t tests = 0;
    for (const TableRow& row : table.rows) {
      const auto& difference = row.cells[m].difference;
      if (!difference || difference->test == SignificanceTest::none) continue;
      used.insert(difference->test);
      ++tests;
      if (difference->test != SignificanceTest::welch) pairs.insert(difference->pairs);
    }
    most = std::max(most, tests);
  }
  if (used.empty()) return "too few trials for a test";
  std::string text;
  for (const SignificanceTest test : used) {
    text += fmt::format("{}{}", text.empty() ? "" : "; ", name_of(test));
    if (test != SignificanceTest::welch)
      text +=
          fmt::format(" over {} pairs of the same {}",
                      pairs.size() == 1 ? fmt::format("{}", *pairs.begin())
                                        : fmt::format("{} to {}", *pairs.begin(), *pairs.rbegin()),
                      listed_titles(source.comparison.pairing));
    else if (used.size() > 1)
      text += " where less than two pairs are there";
  }
  text += "; two-sided p";
  if (most < 2) return text;
  return text + (source.options.correction == PCorrection::holm
                     ? fmt::format(" with Holm's correction for {} comparisons per metric", most)
                     : fmt::format(" without correction for {} comparisons per metric", most));
}

/// The best group of a metric against another one.
struct Contest {
  std::size_t row = 0;  // the other one
  std::optional<double> p;
};

/// p of the best against all others, corrected; where the table prints the same comparison, its p.
std::vector<Contest> contests(const TableSource& source, const StudyTable& table, std::size_t m,
                              std::size_t best, const std::vector<std::size_t>& others,
                              const Baselines& baselines) {
  std::vector<Contest> result;
  for (const std::size_t r : others)
    result.push_back(
        {r,
         source.comparison.difference(source.groups[r], source.groups[best], table.metrics[m].name)
             .p});
  std::vector<std::optional<double>*> p;
  for (Contest& contest : result)
    if (contest.p) p.push_back(&contest.p);
  correct(p, source.options.correction);
  for (Contest& contest : result) {
    if (baselines.of_row[contest.row] == best) contest.p = table.rows[contest.row].cells[m].p;
    if (baselines.of_row[best] == contest.row) contest.p = table.rows[best].cells[m].p;
  }
  return result;
}

std::string named_groups(const TableSource& source, const std::vector<std::size_t>& rows) {
  std::vector<std::string> names;
  for (std::size_t i = 0; i < std::min(rows.size(), kMostNamed); ++i)
    names.push_back(group_label(source.by, source.groups[rows[i]].values));
  if (rows.size() > kMostNamed) names.push_back(counted(std::ssize(rows) - kMostNamed, "other"));
  return fmt::format("{}", fmt::join(names, ", "));
}

/// The rows that have a mean, the best first.
std::vector<std::size_t> by_mean(const StudyTable& table, std::size_t m) {
  std::vector<std::size_t> order;
  for (std::size_t r = 0; r < table.rows.size(); ++r)
    if (table.rows[r].cells[m].summary.n > 0) order.push_back(r);
  std::ranges::stable_sort(order, {}, [&](std::size_t r) {
    const double mean = table.rows[r].cells[m].summary.mean;
    return table.metrics[m].better == BetterEnd::higher ? -mean : mean;
  });
  return order;
}

std::string mark_best_of(const TableSource& source, StudyTable& table, std::size_t m,
                         const Baselines& baselines) {
  const MetricColumn& metric = table.metrics[m];
  const std::vector<std::size_t> order = by_mean(table, m);
  Trials compared;
  for (const std::size_t r : order)
    compared.insert(compared.end(), source.groups[r].done.begin(), source.groups[r].done.end());
  if (metric.better == BetterEnd::neither || order.empty() ||
      !why_unlike(compared, metric.name).empty())
    return {};
  const std::size_t best = order.front();
  // Figures that are printed alike are marked alike.
  const std::vector<std::string> means = printed_means(table, m);
  const auto next =
      std::ranges::find_if(order, [&](std::size_t r) { return means[r] != means[best]; });
  if (next == order.end()) return {};  // all the same
  const double moved =
      source.comparison.difference(source.groups[*next], source.groups[best], metric.name)
          .difference;
  // Another choice of seeds makes another mean.
  if (metric.better == BetterEnd::higher ? moved <= 0 : moved >= 0)
    return fmt::format(
        "{}: {} has the best mean, but not where it pairs up with {}: none is marked",
        short_title(metric), group_label(source.by, source.groups[best].values),
        group_label(source.by, source.groups[*next].values));
  for (auto at = order.begin(); at != next; ++at) table.rows[*at].cells[m].best = true;
  std::vector<std::size_t> alike;
  bool tested = false;
  for (const Contest& contest : contests(source, table, m, best, {next, order.end()}, baselines)) {
    tested |= contest.p.has_value();
    if (table.significant(contest.p)) continue;
    table.rows[contest.row].cells[m].like_best = true;
    alike.push_back(contest.row);
  }
  if (alike.empty()) return {};
  const std::vector<std::size_t> marked(order.begin(), next);
  return fmt::format("{}: {} {} the best, but cannot be told from {}{}", short_title(metric),
                     named_groups(source, marked), marked.size() == 1 ? "is" : "are",
                     named_groups(source, alike), tested ? "" : ": too few trials for a test");
}

}  // namespace

SampleDifference GroupComparison::difference(const TrialGroup& first, const TrialGroup& second,
                                             const std::string& metric) const {
  const auto paired = pairs(first, second, metric);
  if (paired.size() >= 2) return compare_pairs(paired, test, confidence);
  return compare_samples(figures_of(first.done, metric), figures_of(second.done, metric),
                         confidence);
}

std::string GroupComparison::unlike(const TrialGroup& first, const TrialGroup& second,
                                    const std::string& metric) {
  Trials both = first.done;
  both.insert(both.end(), second.done.begin(), second.done.end());
  return why_unlike(both, metric);
}

std::vector<std::pair<double, double>> GroupComparison::pairs(const TrialGroup& first,
                                                              const TrialGroup& second,
                                                              const std::string& metric) const {
  if (never_came(first, metric) + never_came(second, metric) > 0 ||
      !unlike(first, second, metric).empty())
    return {};
  const PairedValues a = paired_values(*this, first, metric);
  const PairedValues b = paired_values(*this, second, metric);
  std::vector<std::pair<double, double>> pairs;
  for (const auto& [key, value] : a)
    if (const auto other = b.find(key); other != b.end()) pairs.emplace_back(value, other->second);
  return pairs;
}

int never_came(const TrialGroup& group, const std::string& metric) {
  if (!is_time_to(metric)) return 0;
  return static_cast<int>(std::ranges::count_if(figures_of(group.done, metric),
                                                [](double v) { return std::isinf(v); }));
}

Baselines find_baselines(const TableSource& source, StudyTable& table) {
  const auto wanted = baseline_values(source);
  Baselines baselines;
  baselines.of_row.resize(table.rows.size());
  if (wanted.empty()) return baselines;
  std::map<std::vector<std::string>, std::size_t> rows;
  for (std::size_t r = 0; r < table.rows.size(); ++r) rows[table.rows[r].group] = r;
  for (std::size_t r = 0; r < table.rows.size(); ++r) {
    std::vector<std::string> values = table.rows[r].group;
    for (const auto& [column, value] : wanted) values[column] = value;
    table.rows[r].baseline = values == table.rows[r].group;
    if (table.rows[r].baseline) continue;
    const auto base = rows.find(values);
    if (base == rows.end() || source.groups[base->second].done.empty())
      baselines.without.push_back(group_label(source.by, table.rows[r].group));
    else
      baselines.of_row[r] = base->second;
  }
  return baselines;
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

std::vector<std::string> default_baseline(const TableSource& source) {
  const auto repeated = [](const TrialGroup& group) { return group.done.size() > 1; };
  if (!source.results.metric.empty() || source.groups.size() > kMostCompared ||
      std::ranges::count_if(source.groups, repeated) < 2)
    return {};
  const TrialGroup& first = *std::ranges::find_if(source.groups, repeated);
  for (std::size_t c = 0; c < source.by.size(); ++c)
    if (std::ranges::any_of(source.groups, [&](const TrialGroup& group) {
          return group.values[c] != first.values[c];
        }))
      return {source.by[c] + "=" + first.values[c]};
  return {};
}

std::string compare_with_baseline(const TableSource& source, StudyTable& table) {
  const auto wanted = baseline_values(source);
  if (wanted.empty()) return {};
  std::vector<std::string> columns, values;
  for (const auto& [column, value] : wanted) {
    columns.push_back(source.by[column]);
    values.push_back(value);
  }
  table.baseline = group_label(columns, values);
  const Baselines baselines = find_baselines(source, table);
  for (std::size_t m = 0; m < table.metrics.size(); ++m) {
    const std::string& metric = table.metrics[m].name;
    std::vector<std::optional<double>*> p;
    for (std::size_t r = 0; r < table.rows.size(); ++r) {
      TableCell& cell = table.rows[r].cells[m];
      if (!baselines.of_row[r] || cell.summary.n == 0) continue;
      const TrialGroup& base = source.groups[*baselines.of_row[r]];
      if (never_came(base, metric) > 0 ||
          !GroupComparison::unlike(base, source.groups[r], metric).empty())
        continue;
      cell.difference = source.comparison.difference(base, source.groups[r], metric);
      cell.p = cell.difference->p;
      if (cell.p) p.push_back(&cell.p);
      if (table.claim && table.claim->metric == metric)
        cell.equivalence = test_equivalence(source.comparison.pairs(base, source.groups[r], metric),
                                            table.claim->margin, table.claim->alpha);
    }
    correct(p, source.options.correction);
  }
  table.comparison = comparison_text(source, table);
  if (baselines.without.empty()) return {};
  return fmt::format("no trial of the baseline to compare with: {}",
                     fmt::join(baselines.without, "; "));
}

std::vector<std::string> mark_best(const TableSource& source, StudyTable& table) {
  const Baselines baselines = find_baselines(source, table);
  std::vector<std::string> notes;
  for (std::size_t m = 0; m < table.metrics.size(); ++m)
    notes.push_back(mark_best_of(source, table, m, baselines));
  return notes;
}

}  // namespace concertina
