#include "experiments/results/study_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <tuple>

#include "core/error.h"
#include "core/number_text.h"
#include "experiments/machine/machine.h"
#include "experiments/results/figure_names.h"
#include "experiments/results/group_comparison.h"
#include "experiments/results/measures.h"
#include "experiments/results/study_claims.h"
#include "experiments/results/study_notes.h"

namespace concertina {
namespace {

TableRow make_row(const TableSource& source, const TrialGroup& group) {
  TableRow row{.group = group.values,
               .trials = numbers_of(group.done),
               .others = static_cast<int>(group.others.size())};
  for (const MetricColumn& metric : source.metrics) {
    const std::vector<double> values = figures_of(group.done, metric.name);
    TableCell& cell = row.cells.emplace_back();
    cell.summary = summarize(values, source.options.confidence);
    cell.missing = static_cast<int>(group.done.size() - values.size());
    cell.never = never_came(group, metric.name);
    if (cell.never > 0) cell.summary = summarize({}, source.options.confidence);
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
    index_of(column, words, fmt::format("the table has no column '{}'", column), "--sort");
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
    const auto add = [&](const std::vector<int>& numbers, const char* what,
                         const char* then = ", left out") {
      if (!numbers.empty())
        notes.push_back(fmt::format("{}: {} in trial{} {}{}", short_title(metric), what,
                                    numbers.size() == 1 ? "" : "s", to_ranges(numbers), then));
    };
    add(nan, "NaN");
    if (is_time_to(metric.name))
      add(infinite, "never", ": its group has no mean");
    else
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
                     .baseline = options.baseline,
                     .claim = options.claim ? options.claim : results.claim};
  if (source.claim && source.baseline.empty()) source.baseline = source.claim->baseline;
  if (!options.metrics.empty()) source.metrics.clear();
  for (const std::string& word : options.metrics)
    source.metrics.push_back(metric_column(results, word));
  const auto also = [&](const std::string& word) {
    const MetricColumn metric = metric_column(results, word);
    if (std::ranges::find(source.metrics, metric.name, &MetricColumn::name) == source.metrics.end())
      source.metrics.push_back(metric);
  };
  // As good, but faster. What the file claims may not have come of any trial yet.
  if (source.claim && (options.claim || has_column(results, source.claim->metric)))
    also(source.claim->metric);
  if (source.claim && has_column(results, "train_s")) also("train_s");
  std::ranges::for_each(options.front, also);
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

/// Refuses a claim, or a front, that nothing is compared for.
void require_compared(const TableSource& source, const StudyTable& table) {
  const bool compared = std::ranges::any_of(table.rows, &TableRow::baseline);
  if (compared || source.groups.empty()) return;
  if (source.options.claim)
    throw_input("there is no baseline that groups could be equivalent to", "--equivalent",
                "--baseline COLUMN=VALUE");
  if (!source.options.front.empty())
    throw_input("there is no baseline for a front", "--front", "--baseline COLUMN=VALUE");
}

/// Takes the better one, as far as there is one.
void keep(std::optional<double>& kept, double value, bool least) {
  if (!std::isfinite(value)) return;
  if (!kept || (least ? value < *kept : value > *kept)) kept = value;
}

std::string metric_text(std::optional<double> value, const FigureName& name) {
  return value ? fmt::format("{:#.5g}", name.factor * *value) : "—";
}

std::string settings_label(const Settings& settings) {
  std::vector<std::string> columns, values;
  for (const auto& [key, value] : settings) {
    columns.push_back(key);
    values.push_back(value);
  }
  return group_label(columns, values);
}

void add_trial(SearchCourse& course, const StudyResults& results, const TrialRecord& trial) {
  const auto found = results.rungs.find(trial.number);
  if (found == results.rungs.end() || found->second.empty()) return;
  for (const TrialRung& rung : found->second) {
    const auto at = std::ranges::find(course.rungs, rung.steps, &SearchRung::steps);
    if (at == course.rungs.end()) continue;
    ++at->reached;
    keep(at->best, rung.metric, results.minimise);
  }
  const TrialRung& last = found->second.back();
  course.steps_run += last.steps;
  const auto at = std::ranges::find(course.rungs, last.steps, &SearchRung::steps);
  if (at == course.rungs.end()) return;
  if (trial.state == TrialState::stopped) {
    ++at->stopped;
    keep(at->left_best, last.metric, results.minimise);
    keep(at->left_worst, last.metric, !results.minimise);
  }
  if (last.steps != course.rungs.back().steps || !std::isfinite(last.metric)) return;
  if (course.best == 0 ||
      (results.minimise ? last.metric < course.best_metric : last.metric > course.best_metric)) {
    course.best = trial.number;
    course.best_metric = last.metric;
    course.best_settings = trial.settings;
  }
}

/// The course of a study that halves its trials; nothing of another one.
std::optional<SearchCourse> search_course(const StudyResults& results) {
  if (results.rung_steps.empty()) return std::nullopt;
  SearchCourse course{.metric = results.metric, .trials = static_cast<int>(results.trials.size())};
  for (const std::int64_t steps : results.rung_steps) course.rungs.push_back({.steps = steps});
  course.steps_of_all = results.rung_steps.back() * std::ssize(results.trials);
  for (const TrialRecord& trial : results.trials) add_trial(course, results, trial);
  if (!why_unlike(chosen_trials(results, {}), results.metric).empty()) course.best = 0;
  return course;
}

}  // namespace

PCorrection p_correction(const std::string& word) {
  constexpr std::array<std::string_view, 2> kWords = {"none", "holm"};
  return static_cast<PCorrection>(index_of(
      word, kWords, fmt::format("'{}' is no correction of p values", word), "--correction"));
}

StudyTable make_table(const StudyResults& results, const TableOptions& options) {
  if (!(options.confidence > 0 && options.confidence < 1))
    throw_input(fmt::format("a confidence of {} is none", options.confidence), "--confidence",
                "a number between 0 and 1, such as 0.95");
  const Trials trials = chosen_trials(results, options.where);
  const TableSource source = source_of(results, options, trials);
  StudyTable table{.study = results.name,
                   .loose = results.loose,
                   .by = source.by,
                   .metrics = source.metrics,
                   .confidence = options.confidence,
                   .with_notes = options.notes,
                   .search = search_course(results),
                   .claim = source.claim,
                   .claim_in_file = !options.claim && results.claim &&
                                    source.baseline == results.claim->baseline};
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
  add(results.notes);
  add({compare_with_baseline(source, table)});
  require_compared(source, table);
  add(unlike_notes(done, source.metrics));
  add({pooled_note(source)});
  const std::vector<std::string> contests = mark_best(source, table);
  if (options.contests) add(contests);
  add(left_out_notes(source));
  add(same_bits(done, results.axes));
  add(provenance);
  sort_rows(table, options.sort);
  if (options.front.empty()) return table;
  TableSource sorted = source;
  for (std::size_t r = 0; r < table.rows.size(); ++r)
    sorted.groups[r] = *std::ranges::find(source.groups, table.rows[r].group, &TrialGroup::values);
  table.front = make_front(sorted, table);
  return table;
}

std::vector<std::string> search_lines(const SearchCourse& course) {
  const FigureName name = name_of_figure(course.metric);
  std::string first =
      fmt::format("successive halving of {} trials by {}: ", course.trials, name.short_title());
  first += course.best == 0 && course.rungs.back().reached > 0
               ? "there is no best, since they are not compared"
           : course.best == 0
               ? fmt::format("none has reached the last step, {}", course.rungs.back().steps)
               : fmt::format("the best is trial {} ({}), {} after {} steps", course.best,
                             settings_label(course.best_settings),
                             metric_text(course.best_metric, name), course.rungs.back().steps);
  return {first, fmt::format("cost: {} of the {} steps of the whole grid ({:.0f}%)",
                             grouped(course.steps_run), grouped(course.steps_of_all),
                             100 * course.cost())};
}

std::vector<std::vector<std::string>> rung_rows(const SearchCourse& course) {
  const FigureName name = name_of_figure(course.metric);
  std::vector<std::vector<std::string>> rows = {
      {"Step", "Trials", "Stopped", "Best " + name.title, "Of those stopped"}};
  for (const SearchRung& rung : course.rungs)
    rows.push_back({grouped(rung.steps), fmt::format("{}", rung.reached),
                    fmt::format("{}", rung.stopped), metric_text(rung.best, name),
                    rung.left_best ? fmt::format("{} to {}", metric_text(rung.left_best, name),
                                                 metric_text(rung.left_worst, name))
                                   : "-"});
  return rows;
}

nlohmann::ordered_json to_json(const SearchCourse& course) {
  using Json = nlohmann::ordered_json;
  const auto number = [](std::optional<double> value) { return value ? Json(*value) : Json(); };
  Json json = {{"metric", course.metric},
               {"trials", course.trials},
               {"best", course.best > 0 ? Json(course.best) : Json()},
               {"best_metric", course.best > 0 ? Json(course.best_metric) : Json()},
               {"steps_run", course.steps_run},
               {"steps_of_all", course.steps_of_all},
               {"rungs", Json::array()}};
  for (const SearchRung& rung : course.rungs)
    json["rungs"].push_back({{"steps", rung.steps},
                             {"reached", rung.reached},
                             {"stopped", rung.stopped},
                             {"best", number(rung.best)},
                             {"stopped_best", number(rung.left_best)},
                             {"stopped_worst", number(rung.left_worst)}});
  return json;
}

}  // namespace concertina
