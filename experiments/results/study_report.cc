#include "experiments/results/study_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "core/error.h"
#include "core/number_text.h"
#include "experiments/machine/machine.h"
#include "experiments/report/report_page.h"
#include "experiments/results/config_values.h"
#include "experiments/results/figure_names.h"
#include "io/figure/page.h"
#include "io/file.h"
#include "io/run_files.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;
using html::escape;

std::string page_figure(const Cell& cell, double factor) {
  const auto* found = std::get_if<double>(&cell);
  if (found == nullptr) return escape(cell_text(cell));
  const double number = factor * *found;
  if (std::abs(number) >= 1e4 && std::abs(number) < 1e15) return grouped(std::llround(number));
  return std::isfinite(number) ? fmt::format("{:.5g}", number) : number_text(number);
}

std::string trial_link(const StudyPage& page, int number) {
  const auto found = page.runs.find(number);
  if (found == page.runs.end()) return fmt::format("{}", number);
  const PageRun& run = found->second;
  return fmt::format("<a href=\"{}\">{}{}</a>", escape(run.report.empty() ? run.link : run.report),
                     number, run.report.empty() ? "" : " (report)");
}

/// The trials of the table, done or not, in order.
Trials shown_trials(const StudyPage& page) {
  std::set<int> numbers;
  for (const TableRow& row : page.table.rows) numbers.insert(row.trials.begin(), row.trials.end());
  for (const TrialRecord& trial : page.table.not_done) numbers.insert(trial.number);
  Trials trials;
  for (const TrialRecord& trial : page.results.trials)
    if (numbers.contains(trial.number)) trials.push_back(&trial);
  return trials;
}

std::string trial_errors(const StudyPage& page) {
  std::string text;
  for (const CommonEnd& end : ends_of(page.table)) {
    if (end.error.empty()) continue;
    std::string links;
    for (const TrialRecord* trial : end.trials)
      links += (links.empty() ? "" : ", ") + trial_link(page, trial->number);
    text += fmt::format(
        "<tr><td class=\"wrap\">{}</td><td class=\"group\">{}</td><td "
        "class=\"error\">{}</td></tr>\n",
        links, name_of(end.state), escape(end.error));
  }
  if (text.empty()) return {};
  return "<h2>What went wrong</h2>\n<div class=\"wide\"><table><tr><th>trials</th><th "
         "class=\"group\">state</th><th class=\"group\">error</th></tr>\n" +
         text + "</table></div>\n";
}

std::string values_row(const std::string& key,
                       const std::map<std::string, std::vector<int>>& values) {
  std::string text;
  for (const auto& [value, trials] : values)
    text += fmt::format("{}{} (trial{} {})", text.empty() ? "" : "; ", value,
                        trials.size() == 1 ? "" : "s", to_ranges(trials));
  return fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", escape(key), escape(text));
}

constexpr std::uint64_t kMostPageBytes = 16 << 20;  // of a file that the page shows

/// The page on a study needs more than that on a run.
constexpr const char* kStudyStyle = R"(
table.study td, table.study th { vertical-align: top; padding-right: 22px; }
table.rungs { margin-top: 14px; }
table.study small { display: block; color: var(--soft); font-size: 12px; }
.group { text-align: left; }
ul.note { padding-left: 18px; max-width: 110ch; }
ul.note li { white-space: pre-line; }
td.error, td.wrap, td.group { vertical-align: top; }
td.wrap { white-space: normal; min-width: min(200px, 24vw); text-align: left; }
a { color: var(--blue); }
td.error { text-align: left; white-space: pre-wrap; overflow-wrap: anywhere; }
td.state-failed, td.state-timeout { color: var(--vermillion); font-weight: 600; }
)";

std::string link_from(const fs::path& page, const std::string& target) {
  std::error_code error;
  const fs::path base = fs::absolute(page, error).parent_path();
  const fs::path relative = fs::relative(target, base, error);
  return error || relative.empty() ? target : relative.generic_string();
}

std::string text_of_file(const std::string& path) {
  std::error_code error;
  if (!fs::is_regular_file(path, error)) return {};
  try {
    return read_file(path, kMostPageBytes);
  } catch (const Error&) {  // the page goes without
    return {};
  }
}

/// "1f1b, zb-v and 3 others".
std::string some_of(const std::vector<std::string>& names) {
  constexpr std::size_t kMost = 3;
  if (names.size() <= kMost) return fmt::format("{}", fmt::join(names, ", "));
  return fmt::format("{} and {} others", fmt::join(names.begin(), names.begin() + kMost - 1, ", "),
                     names.size() - kMost + 1);
}

/// The best group of the first metric that has one; where others may be as good, that.
std::string best_tile(const StudyPage& page) {
  const StudyTable& table = page.table;
  for (std::size_t m = 0; m < table.metrics.size(); ++m) {
    const FigureName name = name_of_figure(table.metrics[m].name);
    std::vector<double> means, deviations;
    std::vector<std::string> best, alike;
    double mean = 0;
    for (const TableRow& row : table.rows) {
      const TableCell& cell = row.cells[m];
      means.push_back(name.factor * cell.summary.mean);
      deviations.push_back(name.factor * cell.summary.sd.value_or(0));
      if (cell.best) mean = means.back();
      if (cell.best || cell.like_best)
        (cell.best ? best : alike).push_back(group_label(table.by, row.group));
    }
    if (best.empty()) continue;
    const std::string value =
        fmt::format("{}: {}", name.title, figure_text(mean, digits_for(means, deviations)));
    if (alike.empty()) return html::tile(some_of(best), "the best mean " + value);
    return html::tile("no clear best", fmt::format("{}, {}; cannot be told from {}", value,
                                                   some_of(best), some_of(alike)));
  }
  return {};
}

/// The best trial of a search, and what the search took.
std::string search_tiles(const SearchCourse& course) {
  const FigureName name = name_of_figure(course.metric);
  std::string text;
  if (course.best > 0)
    text += html::tile(fmt::format("trial {}", course.best),
                       fmt::format("the best of {}, {}: {:#.5g}", course.trials, name.title,
                                   name.factor * course.best_metric));
  const auto steps = [](std::int64_t count) { return grouped(count); };
  return text + html::tile(fmt::format("{:.0f}%", 100 * course.cost()),
                           fmt::format("of the whole grid: {} of {} steps", steps(course.steps_run),
                                       steps(course.steps_of_all)));
}

std::string not_done_text(const StudyTable& table) {
  if (table.not_done.empty()) return "trials done";
  const bool stopped =
      table.search && std::ranges::all_of(table.not_done, [](const TrialRecord& trial) {
        return trial.state == TrialState::stopped;
      });
  return stopped ? "trials done; the search stopped the others"
                 : "trials done; the others are below";
}

std::string subtitle(const StudyPage& page) {
  const std::vector<std::string>& axes = page.results.axes;
  constexpr std::size_t kMostAxes = 8;
  const std::string over =
      axes.size() > kMostAxes ? fmt::format("{} keys", axes.size()) : listed_titles(axes);
  if (page.results.loose)
    return axes.empty() ? "of the same config" : "whose configs differ in " + over;
  return axes.empty() ? "study over one trial" : "study over " + over;
}

std::string page_header(const StudyPage& page) {
  const StudyTable& table = page.table;
  std::size_t done = 0;
  double seconds = 0;
  for (const TableRow& row : table.rows) done += row.trials.size();
  for (const TrialRecord& trial : page.results.trials)
    if (const auto took = trial.figures.find("trial_s"); took != trial.figures.end())
      seconds += took->second;
  std::string text = fmt::format(
      "<h1>{}</h1>\n<p class=\"sub\">{}</p>\n"
      "<div class=\"tiles\">\n",
      html::escape(table.study), html::escape(subtitle(page)));
  text +=
      html::tile(fmt::format("{} of {}", done, done + table.not_done.size()), not_done_text(table));
  if (!table.search)
    text += html::tile(
        grouped(std::ssize(table.rows)),
        table.by.empty() ? std::string("group") : "groups by " + listed_titles(table.by));
  text += table.search ? search_tiles(*table.search) : best_tile(page);
  if (seconds > 0) text += html::tile(duration_text(seconds), "of all trials together");
  return text + "</div>\n";
}

/// A line per trial, with links; then what went wrong.
std::string trials_section(const StudyPage& page) {
  const Trials trials = shown_trials(page);
  std::string text = "<h2>Trials</h2>\n<div class=\"wide\"><table><tr><th>trial</th>";
  if (page.results.loose) text += "<th class=\"group\">run</th>";
  for (const std::string& axis : page.results.axes)
    text += fmt::format("<th>{}</th>", escape(name_of_figure(axis).title));
  text += "<th>state</th>";
  if (page.table.search) text += "<th>steps</th>";
  for (const MetricColumn& metric : page.table.metrics)
    text += fmt::format("<th>{}</th>", escape(name_of_figure(metric.name).title));
  text += "<th>took</th></tr>\n";
  const std::size_t shown = std::min(trials.size(), kMaxTableRows);
  for (std::size_t t = 0; t < shown; ++t) {
    const TrialRecord& trial = *trials[t];
    text += fmt::format("<tr><td>{}</td>", trial_link(page, trial.number));
    if (page.results.loose)
      text +=
          fmt::format("<td class=\"group\">{}</td>", escape(cell_text(cell_of(trial, kRunColumn))));
    for (const std::string& axis : page.results.axes)
      text += fmt::format("<td>{}</td>", escape(cell_text(cell_of(trial, axis))));
    text += fmt::format("<td class=\"state-{0}\">{0}</td>", name_of(trial.state));
    if (page.table.search)
      text += fmt::format("<td>{}</td>", page_figure(cell_of(trial, "steps"), 1));
    for (const MetricColumn& metric : page.table.metrics)
      text += fmt::format("<td>{}</td>", page_figure(cell_of(trial, metric.name),
                                                     name_of_figure(metric.name).factor));
    const auto took = trial.figures.find("trial_s");
    text += fmt::format("<td>{}</td></tr>\n",
                        took == trial.figures.end() ? "" : duration_text(took->second));
  }
  text += "</table></div>\n";
  if (shown < trials.size())
    text += fmt::format("<p class=\"note\">The first {} of {} trials; results.csv has all.</p>\n",
                        shown, trials.size());
  return text + trial_errors(page);
}

/// Axes and their values; other keys in which the trials' configs differ.
std::string settings_section(const StudyPage& page) {
  std::string text = "<h2>Settings</h2>\n<div class=\"wide\"><table class=\"about\">\n";
  for (const std::string& axis : page.results.axes) {
    std::vector<std::string> values = values_in(chosen_trials(page.results, {}), axis);
    std::erase(values, "");
    constexpr std::size_t kMostValues = 40;
    const std::size_t all = values.size();
    if (all > kMostValues) values.resize(kMostValues);
    text += fmt::format("<tr><td>{}</td><td>{}{}</td></tr>\n", escape(axis),
                        escape(fmt::format("{}", fmt::join(values, ", "))),
                        all > kMostValues ? fmt::format(" and {} more", all - kMostValues) : "");
  }
  text += "</table></div>\n";
  std::string others;
  std::map<int, std::map<std::string, std::string>> configs;
  for (const auto& [number, run] : page.runs) configs[number] = keys_of(run.config);
  for (const auto& [key, values] : config_values(configs)) {
    const bool own =
        is_place(key) || std::ranges::find(page.results.axes, key) != page.results.axes.end();
    if (values.size() > 1 && !own) others += values_row(key, values);
  }
  if (!page.runs.empty())
    text += others.empty()
                ? std::string(
                      "<p class=\"note\">No other key differs between the configs of the "
                      "runs.</p>\n")
                : "<p class=\"note\">Other keys that differ between the configs of the runs:</p>\n"
                  "<div class=\"wide\"><table class=\"about\">\n" +
                      others + "</table></div>\n";
  text += html::folded(fs::path(page.results.file).filename().string(), page.spec);
  if (!page.runs.empty())
    text += html::folded(fmt::format("{} of trial {}", kConfigFile, page.runs.begin()->first),
                         page.runs.begin()->second.config);
  return text;
}

/// Programs and machines.
std::string origin_section(const StudyPage& page) {
  std::string rows;
  for (const char* fact : {"version", "commit", "program", "host", "processor", "device", "isa",
                           "compute", "onednn", "libraries"}) {
    std::map<std::string, std::vector<int>> values;
    for (const TrialRecord* trial : shown_trials(page))
      if (const auto found = trial->facts.find(fact);
          found != trial->facts.end() && !found->second.empty())
        values[found->second].push_back(trial->number);
    if (!values.empty()) rows += values_row(fact, values);
  }
  if (rows.empty()) return {};
  return "<h2>Where it is from</h2>\n<div class=\"wide\"><table class=\"about\">\n" + rows +
         "</table></div>\n";
}

}  // namespace

std::vector<PageGroup> page_groups(const StudyPage& page) {
  std::vector<PageGroup> groups;
  for (const TableRow& row : page.table.rows) {
    PageGroup& group = groups.emplace_back(group_label(page.table.by, row.group));
    for (const int number : row.trials)
      group.trials.push_back(
          &*std::ranges::find(page.results.trials, number, &TrialRecord::number));
  }
  return groups;
}

StudyPage load_study_page(const StudyResults& results, const TableOptions& options,
                          const std::string& path) {
  StudyPage page{.results = results,
                 .table = make_table(results, options),
                 .spec = text_of_file(results.file)};
  std::ranges::sort(page.results.trials, {}, &TrialRecord::number);
  for (const TrialRecord& trial : page.results.trials) {
    std::error_code error;
    if (trial.directory.empty() || !fs::is_directory(trial.directory, error)) continue;
    const std::string report = run_file(trial.directory, kPageFile);
    page.runs[trial.number] = {
        read_log(trial.directory), text_of_file(run_file(trial.directory, kConfigFile)),
        link_from(path, trial.directory), fs::exists(report, error) ? link_from(path, report) : ""};
  }
  return page;
}

std::string study_page(const StudyPage& page) {
  return html::page(page.table.study,
                    page_header(page) + page.first + "<h2>Table</h2>\n" +
                        table_text(page.table, TableFormat::html, TableCells::difference) +
                        curves_section(page) + step_time_section(page) + trials_section(page) +
                        settings_section(page) + origin_section(page),
                    kStudyStyle);
}

}  // namespace concertina
