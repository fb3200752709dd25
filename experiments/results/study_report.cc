#include "experiments/results/study_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/number_text.h"
#include "experiments/report/html.h"
#include "experiments/results/figure_digits.h"
#include "experiments/results/figure_names.h"
#include "experiments/results/study_report_sections.h"
#include "io/file.h"
#include "io/run_files.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostPageBytes = 16 << 20;  // of a file that the page shows

/// What the page of a run has no use for.
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

std::string titles(const std::vector<std::string>& columns) {
  std::string text;
  for (const std::string& column : columns)
    text += (text.empty() ? "" : ", ") + name_of_figure(column).short_title();
  return text;
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

std::string page_header(const StudyPage& page) {
  const StudyTable& table = page.table;
  std::size_t done = 0;
  double seconds = 0;
  for (const TableRow& row : table.rows) done += row.trials.size();
  for (const TrialRecord& trial : page.results.trials)
    if (const auto took = trial.figures.find("trial_s"); took != trial.figures.end())
      seconds += took->second;
  std::string text = fmt::format(
      "<h1>{}</h1>\n<p class=\"sub\">study over {}</p>\n"
      "<div class=\"tiles\">\n",
      html::escape(table.study),
      page.results.axes.empty() ? std::string("one trial")
                                : html::escape(titles(page.results.axes)));
  text +=
      html::tile(fmt::format("{} of {}", done, done + table.not_done.size()), not_done_text(table));
  if (!table.search)
    text += html::tile(grouped(std::ssize(table.rows)),
                       table.by.empty() ? std::string("group") : "groups by " + titles(table.by));
  text += table.search ? search_tiles(*table.search) : best_tile(page);
  if (seconds > 0) text += html::tile(duration_text(seconds), "of all trials together");
  return text + "</div>\n";
}

}  // namespace

std::vector<PageGroup> page_groups(const StudyPage& page) {
  std::vector<PageGroup> groups;
  for (const TableRow& row : page.table.rows) {
    PageGroup& group = groups.emplace_back();
    group.label = group_label(page.table.by, row.group);
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
                 .spec = text_of_file(results.file),
                 .courses = {},
                 .configs = {},
                 .reports = {},
                 .runs = {}};
  std::ranges::sort(page.results.trials, {}, &TrialRecord::number);
  for (const TrialRecord& trial : page.results.trials) {
    std::error_code error;
    if (trial.directory.empty() || !fs::is_directory(trial.directory, error)) continue;
    page.runs[trial.number] = link_from(path, trial.directory);
    page.courses[trial.number] = read_course(trial);
    page.configs[trial.number] = text_of_file(run_file(trial.directory, kConfigFile));
    if (const std::string report = run_file(trial.directory, kPageFile); fs::exists(report, error))
      page.reports[trial.number] = link_from(path, report);
  }
  return page;
}

std::string study_page(const StudyPage& page) {
  return html::page(page.table.study,
                    page_header(page) + "<h2>Table</h2>\n" +
                        table_text(page.table, TableFormat::html, TableCells::difference) +
                        curves_section(page) + step_time_section(page) + trials_section(page) +
                        settings_section(page) + origin_section(page),
                    kStudyStyle);
}

}  // namespace concertina
