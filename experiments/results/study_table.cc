#include "experiments/results/study_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "core/error.h"
#include "core/nearest.h"
#include "core/number_text.h"
#include "experiments/machine/machine.h"
#include "experiments/results/group_comparison.h"
#include "experiments/results/provenance.h"
#include "experiments/results/same_bits.h"
#include "experiments/results/study_table_compare.h"

namespace concertina {
namespace {

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
        notes.push_back(fmt::format("{}: {} in trial{} {}, left out", short_title(metric), what,
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
  return fmt::format("a group has trials of several {}", listed_titles(axes));
}

TableSource source_of(const StudyResults& results, const TableOptions& options,
                      const Trials& trials) {
  TableSource source{.results = results,
                     .options = options,
                     .metrics = default_metrics(results),
                     .by = options.by,
                     .comparison = {},
                     .groups = {},
                     .baseline = options.baseline};
  if (!options.metrics.empty()) source.metrics.clear();
  for (const std::string& word : options.metrics)
    source.metrics.push_back(metric_column(results, word));
  for (const std::string& column : source.by) require_column(results, column, "--by");
  if (source.by.empty()) source.by = default_groups(results, options.pair);
  source.groups = groups_of(trials, source.by);
  if (!results.rung_steps.empty())  // the search says what became of those that it stopped
    std::erase_if(source.groups, [](const TrialGroup& group) {
      return group.done.empty() && std::ranges::all_of(group.others, [](const TrialRecord* trial) {
               return trial->state == TrialState::stopped;
             });
    });
  source.comparison = {.pairing = pairing_columns(results, options.pair, source.by, source.groups),
                       .test = options.test_of_pairs,
                       .confidence = options.confidence};
  if (source.baseline == std::vector<std::string>{"none"})
    source.baseline.clear();
  else if (source.baseline.empty())
    source.baseline = default_baseline(source);
  return source;
}

}  // namespace

PCorrection p_correction(const std::string& word) {
  constexpr std::array<std::string_view, 2> kWords = {"none", "holm"};
  const auto found = std::ranges::find(kWords, word);
  if (found == kWords.end())
    throw_input(fmt::format("'{}' is no correction of p values", word), "--correction",
                one_of(nearest_word(word, kWords), kWords));
  return static_cast<PCorrection>(found - kWords.begin());
}

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
                   .baseline = {},
                   .comparison = {},
                   .notes = {},
                   .not_done = {},
                   .search = search_course(results)};
  Trials done;
  for (const TrialRecord* trial : trials)
    if (trial->state == TrialState::done)
      done.push_back(trial);
    else
      table.not_done.push_back(*trial);
  const std::vector<std::string> provenance = provenance_notes(done, results, options.mixed);
  for (const TrialGroup& group : source.groups) table.rows.push_back(make_row(source, group));
  const auto add = [&](const std::vector<std::string>& notes) {
    for (const std::string& note : notes)
      if (!note.empty()) table.notes.push_back(note);
  };
  add({compare_with_baseline(source, table)});
  add({pooled_note(source)});
  add(mark_best(source, table));
  add(left_out_notes(source));
  add(same_bits(done, results.axes));
  add(provenance);
  sort_rows(table, options.sort);
  return table;
}

}  // namespace concertina
