#include "experiments/study/study_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <set>

#include "core/error.h"
#include "core/nearest.h"
#include "core/number_text.h"
#include "experiments/run/machine.h"
#include "experiments/study/group_comparison.h"
#include "experiments/study/provenance.h"
#include "experiments/study/same_bits.h"

namespace concertina {
namespace {

/// What of the results a table is made of.
struct TableSource {
  const StudyResults& results;
  const TableOptions& options;
  std::vector<MetricColumn> metrics;
  std::vector<std::string> by;
  GroupComparison comparison;
  std::vector<TrialGroup> groups;
};

TableRow make_row(const TableSource& source, const TrialGroup& group) {
  TableRow row{.group = group.values,
               .trials = numbers_of(group.done),
               .others = static_cast<int>(group.others.size()),
               .baseline = false,
               .cells = {}};
  for (const MetricColumn& metric : source.metrics) {
    const std::vector<double> values = figures_of(group.done, metric.name);
    TableCell& cell = row.cells.emplace_back();
    cell.summary = summarize(values, source.options.confidence);
    cell.missing = static_cast<int>(group.done.size() - values.size());
  }
  return row;
}

/// The values that the baseline has in columns of `by`, by position there.
std::map<std::size_t, std::string> baseline_values(const TableSource& source) {
  std::map<std::size_t, std::string> wanted;
  for (const std::string& text : source.options.baseline) {
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

/// Differences of each row to its baseline; the rows that have none.
std::vector<std::string> add_differences(const TableSource& source, StudyTable& table) {
  const auto wanted = baseline_values(source);
  std::vector<std::string> without;
  for (std::size_t r = 0; r < table.rows.size() && !wanted.empty(); ++r) {
    TableRow& row = table.rows[r];
    std::vector<std::string> values = row.group;
    for (const auto& [column, value] : wanted) values[column] = value;
    row.baseline = values == row.group;
    if (row.baseline) continue;
    const auto base = std::ranges::find(source.groups, values, &TrialGroup::values);
    if (base == source.groups.end() || base->done.empty()) {
      without.push_back(settings_text(source.by, row.group));
      continue;
    }
    for (std::size_t m = 0; m < source.metrics.size(); ++m)
      if (row.cells[m].summary.n > 0)
        row.cells[m].difference =
            source.comparison.difference(*base, source.groups[r], source.metrics[m].name);
  }
  return without;
}

/// Marks the best mean of metric `m`; a line if that may be chance.
std::string mark_best(const TableSource& source, StudyTable& table, std::size_t m) {
  const MetricColumn& metric = source.metrics[m];
  std::vector<std::size_t> order;
  for (std::size_t r = 0; r < table.rows.size(); ++r)
    if (table.rows[r].cells[m].summary.n > 0) order.push_back(r);
  const auto mean = [&](std::size_t r) {
    const double value = table.rows[r].cells[m].summary.mean;
    return metric.better == BetterEnd::higher ? -value : value;
  };
  if (metric.better == BetterEnd::neither || order.empty()) return {};
  std::ranges::stable_sort(order, {}, mean);
  const auto second =
      std::ranges::find_if(order, [&](std::size_t r) { return mean(r) != mean(order.front()); });
  if (second == order.end()) return {};  // all the same
  const TrialGroup& first = source.groups[order.front()];
  const TrialGroup& next = source.groups[*second];
  const std::string names[] = {settings_text(source.by, first.values),
                               settings_text(source.by, next.values)};
  const SampleDifference difference = source.comparison.difference(next, first, metric.name);
  // Another choice of seeds makes another mean.
  if (metric.better == BetterEnd::higher ? difference.difference <= 0 : difference.difference >= 0)
    return fmt::format(
        "{}: {} has the best mean, but not where it pairs up with {}: none is marked", metric.name,
        names[0], names[1]);
  for (auto at = order.begin(); at != second; ++at) table.rows[*at].cells[m].best = true;
  if (table.significant(difference)) return {};
  return fmt::format("{}: the best, {}, cannot be told from {}{}", metric.name, names[0], names[1],
                     difference.p
                         ? fmt::format(" (p {:.2g}, {})", *difference.p, name_of(difference.test))
                         : ": too few trials for a test");
}

void sort_rows(StudyTable& table, const std::string& column) {
  if (column.empty()) return;
  const auto metric = std::ranges::find(table.metrics, column, &MetricColumn::name);
  const auto by = std::ranges::find(table.by, column);
  if (metric == table.metrics.end() && by == table.by.end()) {
    std::vector<std::string> names = table.by;
    for (const MetricColumn& known : table.metrics) names.push_back(known.name);
    const std::vector<std::string_view> words(names.begin(), names.end());
    throw_input(fmt::format("the table has no column '{}'", column), "--sort",
                one_of(nearest_word(column, words), words));
  }
  if (metric == table.metrics.end()) {
    const auto at = static_cast<std::size_t>(by - table.by.begin());
    // Numbers by size, before texts.
    std::ranges::stable_sort(table.rows, {}, [&](const TableRow& row) {
      const Cell cell = cell_of_setting(row.group[at]);
      const auto* number = std::get_if<double>(&cell);
      return std::tuple(number == nullptr, number && !std::isnan(*number) ? *number : 0.0,
                        row.group[at]);
    });
    return;
  }
  const auto at = static_cast<std::size_t>(metric - table.metrics.begin());
  std::ranges::stable_sort(table.rows, {}, [&](const TableRow& row) {
    const SampleSummary& summary = row.cells[at].summary;
    const double sign = metric->better == BetterEnd::higher ? -1 : 1;
    return std::pair(summary.n == 0, summary.n == 0 ? 0.0 : sign * summary.mean);
  });
}

/// How to read intervals and differences.
std::vector<std::string> reading_notes(const TableSource& source, const StudyTable& table,
                                       const std::vector<std::string>& without) {
  bool spread = false;
  int pairs_low = 0, pairs_high = 0, tests = 0;
  std::set<SignificanceTest> used;
  for (const TableRow& row : table.rows)
    for (const TableCell& cell : row.cells) {
      spread |= cell.summary.sd.has_value();
      if (!cell.difference) continue;
      used.insert(cell.difference->test);
      tests += cell.difference->p.has_value();
      if (cell.difference->pairs == 0) continue;
      pairs_low =
          pairs_low == 0 ? cell.difference->pairs : std::min(pairs_low, cell.difference->pairs);
      pairs_high = std::max(pairs_high, cell.difference->pairs);
    }
  std::vector<std::string> notes;
  notes.push_back(spread
                      ? fmt::format("mean ± standard deviation, [{:.4g}% interval of the mean] by "
                                    "Student's t; n: trials that are done",
                                    100 * table.confidence)
                      : "n = 1: no standard deviation, no interval");
  if (source.options.baseline.empty()) return notes;
  std::string note = fmt::format("Δ: difference to {}", fmt::join(source.options.baseline, ", "));
  used.erase(SignificanceTest::none);
  for (const SignificanceTest test : used) {
    note += fmt::format("; {}", name_of(test));
    if (test != SignificanceTest::welch)
      note += fmt::format(" over {} pairs of the same {}",
                          pairs_low == pairs_high ? fmt::format("{}", pairs_low)
                                                  : fmt::format("{} to {}", pairs_low, pairs_high),
                          fmt::join(source.comparison.pairing, ", "));
    else if (used.size() > 1)
      note += " where less than two pairs are there";
  }
  if (used.empty()) note += "; too few trials for a test";
  if (tests > 0) note += fmt::format("; p two-sided, *: p < {:.4g}", 1 - table.confidence);
  if (tests > 1) note += fmt::format(", no correction for {} tests", tests);
  notes.push_back(note);
  if (!without.empty())
    notes.push_back(
        fmt::format("no trial of the baseline to compare with: {}", fmt::join(without, "; ")));
  return notes;
}

/// Values that were left out, metric by metric.
std::vector<std::string> left_out_notes(const TableSource& source) {
  std::vector<std::string> notes;
  Trials done;
  for (const TrialGroup& group : source.groups)
    done.insert(done.end(), group.done.begin(), group.done.end());
  std::ranges::sort(done, {}, &TrialRecord::number);
  for (const MetricColumn& metric : source.metrics) {
    std::vector<int> nan, infinite, missing;
    for (const TrialRecord* trial : done) {
      const auto value = number_of(*trial, metric.name);
      if (!value)
        missing.push_back(trial->number);
      else if (std::isnan(*value))
        nan.push_back(trial->number);
      else if (std::isinf(*value))
        infinite.push_back(trial->number);
    }
    const auto add = [&](const std::vector<int>& numbers, const char* what) {
      if (!numbers.empty())
        notes.push_back(fmt::format("{}: {} in trial{} {}, left out", metric.name, what,
                                    numbers.size() == 1 ? "" : "s", to_ranges(numbers)));
    };
    add(nan, "NaN");
    add(infinite, "infinite");
    add(missing, "no finite value");
  }
  return notes;
}

/// Axes that are no seed and have several values in one mean.
std::string pooled_note(const TableSource& source) {
  std::vector<std::string> axes = pooled_axes(source.results, source.by, source.groups);
  std::erase_if(axes, [&](const std::string& axis) {
    return axis == "run.seed" || axis == source.options.pair;
  });
  if (axes.empty()) return {};
  return fmt::format("a group has trials of several {}", fmt::join(axes, ", "));
}

TableSource source_of(const StudyResults& results, const TableOptions& options,
                      const Trials& trials) {
  TableSource source{.results = results,
                     .options = options,
                     .metrics = default_metrics(results),
                     .by = options.by,
                     .comparison = {},
                     .groups = {}};
  if (!options.metrics.empty()) source.metrics.clear();
  for (const std::string& word : options.metrics)
    source.metrics.push_back(metric_column(results, word));
  for (const std::string& column : source.by) require_column(results, column, "--by");
  if (source.by.empty()) source.by = default_groups(results, options.pair);
  source.groups = groups_of(trials, source.by);
  source.comparison = {.pairing = pairing_columns(results, options.pair, source.by, source.groups),
                       .test = options.test_of_pairs,
                       .confidence = options.confidence};
  return source;
}

}  // namespace

StudyTable make_table(const StudyResults& results, const TableOptions& options) {
  if (!(options.confidence > 0 && options.confidence < 1))
    throw_input(fmt::format("a confidence of {} is none", options.confidence), "--confidence",
                "a number between 0 and 1, such as 0.95");
  const Trials trials = chosen_trials(results, options.where);
  const TableSource source = source_of(results, options, trials);
  StudyTable table{.study = results.name,
                   .by = source.by,
                   .metrics = source.metrics,
                   .confidence = options.confidence,
                   .rows = {},
                   .notes = {},
                   .not_done = {}};
  Trials done;
  for (const TrialRecord* trial : trials)
    if (trial->state == TrialState::done)
      done.push_back(trial);
    else
      table.not_done.push_back(*trial);
  const std::vector<std::string> provenance = provenance_notes(done, results, options.mixed);
  for (const TrialGroup& group : source.groups) table.rows.push_back(make_row(source, group));
  const std::vector<std::string> without = add_differences(source, table);
  const auto add = [&](const std::vector<std::string>& notes) {
    for (const std::string& note : notes)
      if (!note.empty()) table.notes.push_back(note);
  };
  if (!done.empty()) add(reading_notes(source, table, without));
  add({pooled_note(source)});
  for (std::size_t m = 0; m < table.metrics.size(); ++m) add({mark_best(source, table, m)});
  add(left_out_notes(source));
  add(same_bits(done, results.axes));
  add(provenance);
  sort_rows(table, options.sort);
  return table;
}

}  // namespace concertina
