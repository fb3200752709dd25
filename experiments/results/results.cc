#include "experiments/results/results.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <set>

#include "core/error.h"
#include "core/nearest.h"
#include "experiments/machine/machine.h"
#include "experiments/results/figure_names.h"
#include "experiments/results/measures.h"

namespace concertina {
namespace {

constexpr std::array kStates = {"open", "done", "failed", "timeout", "stopped"};

Cell cell_of_text(const std::string& text) {
  double value = 0;
  const char* end = text.data() + text.size();
  const auto [parsed, error] = std::from_chars(text.data(), end, value);
  if (error == std::errc{} && parsed == end && !text.empty()) return value;
  return text;
}

constexpr std::size_t kMostNames = 12;  // that an error lists

/// All columns, with settings that are no axes.
std::vector<std::string> all_columns(const StudyResults& results) {
  std::vector<std::string> columns = columns_of(results);
  for (const TrialRecord& trial : results.trials)
    for (const auto& [key, text] : trial.settings)
      if (std::ranges::find(columns, key) == columns.end()) columns.push_back(key);
  return columns;
}

/// The nearest name, else those that have `word` in them, else the first few; a long list would
/// hide the one that is meant.
std::string advice(const std::string& word, const std::vector<std::string>& names) {
  std::vector<std::string_view> known(names.begin(), names.end());
  const std::string_view nearest = nearest_word(word, known);
  const std::size_t all = known.size();
  if (all <= kMostNames) return one_of(nearest, known);
  if (!nearest.empty())
    return fmt::format("{} (one of {} columns; results.csv has all)", nearest, all);
  std::vector<std::string_view> alike;
  std::ranges::copy_if(known, std::back_inserter(alike), [&](std::string_view name) {
    return !word.empty() && name.find(word) != name.npos;
  });
  if (alike.empty()) alike = known;
  alike.resize(std::min(alike.size(), kMostNames));
  return fmt::format("{} (some of {} columns; results.csv has all)", fmt::join(alike, ", "), all);
}

BetterEnd better_where(bool minimise) {
  return minimise ? BetterEnd::lower : BetterEnd::higher;
}

}  // namespace

const char* name_of(TrialState state) {
  return kStates.at(static_cast<std::size_t>(state));
}

TrialState trial_state(const std::string& word, const std::string& where) {
  const auto found = std::ranges::find(kStates, word);
  if (found == kStates.end())
    throw_input(fmt::format("a trial cannot have the state '{}'", word), where,
                fmt::format("one of: {}", fmt::join(kStates, ", ")));
  return static_cast<TrialState>(found - kStates.begin());
}

void include_stopped(StudyResults& results) {
  std::vector<int> numbers;
  for (TrialRecord& trial : results.trials)
    if (trial.state == TrialState::stopped) {
      trial.state = TrialState::done;
      numbers.push_back(trial.number);
    }
  if (numbers.empty()) return;
  results.with_stopped = true;
  results.rung_steps.clear();
  results.rungs.clear();
  results.notes.push_back(fmt::format(
      "trials {} were stopped: their figures are of the steps that they did", to_ranges(numbers)));
}

Cell cell_of(const TrialRecord& trial, const std::string& column) {
  for (const auto& [key, text] : trial.settings)
    if (key == column) return cell_of_text(text);
  if (const auto found = trial.figures.find(column); found != trial.figures.end())
    return found->second;
  if (const auto found = trial.facts.find(column); found != trial.facts.end()) return found->second;
  if (column == "trial") return static_cast<double>(trial.number);
  if (column == "state") return name_of(trial.state);
  if (column == "error" && !trial.error.empty()) return trial.error;
  return {};
}

std::vector<std::string> columns_of(const StudyResults& results) {
  std::vector<std::string> columns = {"trial", "state"};
  columns.insert(columns.end(), results.axes.begin(), results.axes.end());
  std::set<std::string> figures, facts;
  for (const TrialRecord& trial : results.trials) {
    for (const auto& [name, value] : trial.figures) figures.insert(name);
    for (const auto& [name, text] : trial.facts) facts.insert(name);
  }
  for (const auto& names : {figures, facts})
    for (const std::string& name : names)
      if (std::ranges::find(columns, name) == columns.end()) columns.push_back(name);
  columns.emplace_back("error");
  return columns;
}

std::string cell_text(const Cell& cell) {
  if (const auto* number = std::get_if<double>(&cell)) return fmt::format("{}", *number);
  if (const auto* text = std::get_if<std::string>(&cell)) return *text;
  return {};
}

std::string settings_text(const Settings& settings) {
  std::string text;
  for (const auto& [key, value] : settings)
    text += fmt::format("{}{}={}", text.empty() ? "" : " ", key, value);
  return text;
}

MetricColumn metric_column(const StudyResults& results, const std::string& word) {
  const std::size_t colon = word.rfind(':');
  const std::string way = colon == std::string::npos ? "" : word.substr(colon + 1);
  const bool says = way == "min" || way == "max";
  if (colon != std::string::npos && !says && has_column(results, word.substr(0, colon)))
    throw_input(fmt::format("'{}' is no direction of a metric", way), "--metric",
                fmt::format("{0}:min or {0}:max", word.substr(0, colon)));
  MetricColumn metric{says ? word.substr(0, colon) : word, better_where(way == "min")};
  require_column(results, metric.name, "--metric");
  if (!says)
    metric.better = metric.name == results.metric ? better_where(results.minimise)
                                                  : name_of_figure(metric.name).better;
  return metric;
}

std::vector<MetricColumn> default_metrics(const StudyResults& results) {
  // The first that there is, of what a task counts beside its loss.
  constexpr std::array kOfTasks = {"validation_accuracy", "validation_exact_match",
                                   "validation_entity_f1", "validation_subset_accuracy",
                                   "validation_pearson_correlation"};
  const auto of_task =
      std::ranges::find_if(kOfTasks, [&](const char* name) { return has_column(results, name); });
  Trials done;
  for (const TrialRecord& trial : results.trials)
    if (trial.state == TrialState::done) done.push_back(&trial);
  const bool by_text =
      !why_unlike(done, "validation_loss").empty() && why_unlike(done, kBitsPerByte).empty();
  std::vector<MetricColumn> metrics;
  for (const std::string& name :
       {std::string(by_text ? kBitsPerByte : ""),
        results.metric.empty() ? std::string("validation_loss") : results.metric,
        std::string(of_task == kOfTasks.end() ? "" : *of_task), std::string("loss"),
        std::string("tokens_per_s"), std::string("median_step_ms"), std::string("bubble"),
        std::string("peak_bytes")})
    if (has_column(results, name) &&
        std::ranges::find(metrics, name, &MetricColumn::name) == metrics.end())
      metrics.push_back(metric_column(results, name));
  return metrics;
}

bool is_layout_key(const std::string& key) {
  return key.starts_with("parallel.") || key == "ranks" || key == "run.threads";
}

bool has_column(const StudyResults& results, const std::string& column) {
  return std::ranges::any_of(results.trials, [&](const TrialRecord& trial) {
    return !std::holds_alternative<std::monostate>(cell_of(trial, column));
  });
}

void require_column(const StudyResults& results, const std::string& column, const char* option) {
  if (has_column(results, column)) return;
  const std::vector<std::string> known = all_columns(results);
  // A column that is known but empty so far: "error" of a study without errors.
  if (std::ranges::find(known, column) != known.end())
    throw_input(fmt::format("no trial has a value in the column '{}'", column), option,
                advice("", known));
  throw_input(fmt::format("no trial has the column '{}'", column), option, advice(column, known));
}

ColumnValue column_value(const StudyResults& results, const std::string& text, const char* option) {
  const std::size_t equals = text.find('=');
  if (equals == std::string::npos || equals == 0)
    throw_input(fmt::format("'{}' is not COLUMN=VALUE", text), option,
                fmt::format("{} parallel.schedule=1f1b", option));
  const ColumnValue result{text.substr(0, equals), text.substr(equals + 1)};
  require_column(results, result.column, option);
  return result;
}

Cell cell_of_setting(const std::string& text) {
  TrialRecord trial;
  trial.settings = {{"x", text}};
  return cell_of(trial, "x");
}

bool same_value(const Cell& cell, const std::string& value) {
  const Cell other = cell_of_setting(value);
  if (std::holds_alternative<double>(cell)) return other == cell;
  return cell_text(cell) == value;
}

std::optional<double> number_of(const TrialRecord& trial, const std::string& column) {
  const Cell cell = cell_of(trial, column);
  if (const auto* text = std::get_if<std::string>(&cell))
    throw_input(fmt::format("the column '{}' is no number in trial {}: '{}'", column, trial.number,
                            text->substr(0, 80)),
                "--metric", "a figure of result.json, such as loss or tokens_per_s");
  const auto* number = std::get_if<double>(&cell);
  return number ? std::optional(*number) : std::nullopt;
}

Trials chosen_trials(const StudyResults& results, const std::vector<std::string>& where) {
  Trials trials;
  for (const TrialRecord& trial : results.trials) trials.push_back(&trial);
  std::ranges::sort(trials, {}, &TrialRecord::number);
  std::map<std::string, std::vector<std::string>> filters;
  for (const std::string& text : where) {
    const ColumnValue filter = column_value(results, text, "--where");
    filters[filter.column].push_back(filter.value);
  }
  for (const auto& [column, values] : filters) {
    const std::vector<std::string> known = values_in(trials, column);
    std::erase_if(trials, [&, &name = column, &wanted = values](const TrialRecord* trial) {
      return std::ranges::none_of(
          wanted, [&](const std::string& v) { return same_value(cell_of(*trial, name), v); });
    });
    if (trials.empty() && !results.trials.empty())
      throw_input(fmt::format("no trial is left with {}={}", column, fmt::join(values, " or ")),
                  "--where", advice(values[0], known));
  }
  return trials;
}

std::vector<int> numbers_of(const Trials& trials) {
  std::vector<int> numbers;
  for (const TrialRecord* trial : trials) numbers.push_back(trial->number);
  return numbers;
}

std::vector<TrialGroup> groups_of(const Trials& trials, const std::vector<std::string>& columns) {
  std::vector<TrialGroup> groups;
  std::map<std::vector<std::string>, std::size_t> found;
  for (const TrialRecord* trial : trials) {
    std::vector<std::string> values;
    for (const std::string& column : columns) values.push_back(cell_text(cell_of(*trial, column)));
    const auto [at, is_new] = found.emplace(values, groups.size());
    if (is_new) groups.push_back({.values = values, .done = {}, .others = {}});
    TrialGroup& group = groups[at->second];
    (trial->state == TrialState::done ? group.done : group.others).push_back(trial);
  }
  return groups;
}

std::vector<std::string> default_groups(const StudyResults& results, const std::string& pair) {
  std::vector<std::string> columns;
  for (const std::string& axis : results.axes)
    if (axis != "run.seed" && axis != pair) columns.push_back(axis);
  return columns;
}

std::string settings_text(const std::vector<std::string>& columns,
                          const std::vector<std::string>& values) {
  std::string text;
  for (std::size_t i = 0; i < columns.size(); ++i)
    text += fmt::format("{}{}={}", i > 0 ? " " : "", columns[i], values[i]);
  return text;
}

std::string group_label(const std::vector<std::string>& columns,
                        const std::vector<std::string>& values) {
  std::string label;
  for (std::size_t i = 0; i < columns.size(); ++i) {
    const bool named = !std::holds_alternative<std::string>(cell_of_setting(values[i])) ||
                       values[i].empty() || values[i] == "true" || values[i] == "false";
    const std::string key = columns[i].substr(columns[i].rfind('.') + 1);
    label += fmt::format("{}{}{}", i > 0 ? " " : "", named ? key + "=" : "",
                         values[i].empty() ? "none" : values[i]);
  }
  return label.empty() ? "all trials" : label;
}

std::vector<double> figures_of(const Trials& trials, const std::string& column) {
  std::vector<double> values;
  for (const TrialRecord* trial : trials)
    if (const auto value = number_of(*trial, column)) values.push_back(*value);
  return values;
}

std::vector<std::string> values_in(const Trials& trials, const std::string& column) {
  std::vector<std::string> values;
  for (const TrialRecord* trial : trials)
    if (const std::string text = cell_text(cell_of(*trial, column));
        std::ranges::find(values, text) == values.end())
      values.push_back(text);
  return values;
}

std::string short_title(const MetricColumn& metric) {
  return name_of_figure(metric.name).short_title();
}

std::string listed_titles(const std::vector<std::string>& columns) {
  std::string text;
  for (const std::string& column : columns)
    text += (text.empty() ? "" : ", ") + name_of_figure(column).short_title();
  return text;
}

std::size_t index_of(const std::string& word, std::span<const std::string_view> words,
                     const std::string& wrong, const char* option) {
  const auto found = std::ranges::find(words, word);
  if (found == words.end()) throw_input(wrong, option, one_of(nearest_word(word, words), words));
  return static_cast<std::size_t>(found - words.begin());
}

}  // namespace concertina
