#include "experiments/results/study_search.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/number_text.h"
#include "experiments/results/figure_names.h"
#include "experiments/results/study_course.h"

namespace concertina {
namespace {

/// Takes the better one, as far as there is one.
void keep(std::optional<double>& kept, double value, bool least) {
  if (!std::isfinite(value)) return;
  if (!kept || (least ? value < *kept : value > *kept)) kept = value;
}

std::string metric_text(std::optional<double> value, const FigureName& name) {
  return value ? fmt::format("{:#.5g}", name.factor * *value) : "-";
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

}  // namespace

std::optional<SearchCourse> search_course(const StudyResults& results) {
  if (results.rung_steps.empty()) return std::nullopt;
  SearchCourse course{.metric = results.metric,
                      .rungs = {},
                      .trials = static_cast<int>(results.trials.size()),
                      .best_settings = {}};
  for (const std::int64_t steps : results.rung_steps)
    course.rungs.push_back({.steps = steps, .best = {}, .left_best = {}, .left_worst = {}});
  course.steps_of_all = results.rung_steps.back() * std::ssize(results.trials);
  for (const TrialRecord& trial : results.trials) add_trial(course, results, trial);
  return course;
}

std::vector<std::string> search_lines(const SearchCourse& course) {
  const FigureName name = name_of_figure(course.metric);
  std::string first =
      fmt::format("successive halving of {} trials by {}: ", course.trials, name.short_title());
  first += course.best == 0
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
