#include "experiments/study/study_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "core/error.h"
#include "core/number_text.h"
#include "experiments/report/html.h"
#include "experiments/report/report_style.h"
#include "experiments/study/figure_digits.h"
#include "experiments/study/study_report_sections.h"
#include "io/file.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

constexpr std::uint64_t kMostPageBytes = 16 << 20;  // of a file that the page shows

/// What the page of a run has no use for. Series are told apart by colour, then by dashes.
constexpr const char* kStudyStyle = R"(
table.study td, table.study th { vertical-align: top; padding-right: 22px; }
table.study small { display: block; color: var(--soft); font-size: 12px; }
.group { text-align: left; }
ul.note { padding-left: 18px; max-width: 110ch; }
ul.note li { white-space: pre-line; }
.s0 { stroke: var(--f); } .s1 { stroke: var(--b); } .s2 { stroke: var(--reduction); }
.s3 { stroke: var(--transfer); } .s4 { stroke: var(--o); } .s5 { stroke: var(--other); }
.dash { stroke-dasharray: 7 4; }
.key svg line { stroke-width: 3; }
td.error, td.wrap, td.group { vertical-align: top; }
table.bars { width: 100%; } table.bars td { border-bottom: 0; padding: 2px 10px 2px 0; }
table.bars td.bar-cell { width: 100%; min-width: 120px; }
table.bars svg { width: 100%; height: 16px; }
td.wrap { white-space: normal; min-width: min(200px, 24vw); text-align: left; }
.busy { fill: var(--f); } a { color: var(--f); }
td.error { text-align: left; white-space: pre-wrap; overflow-wrap: anywhere; }
td.state-failed, td.state-timeout { color: var(--transfer); font-weight: 600; }
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

std::string page_tile(const std::string& value, const std::string& text) {
  return fmt::format("<div class=\"tile\"><b>{}</b><span>{}</span></div>\n", html::escape(value),
                     html::escape(text));
}

/// The best group of the first metric that has one.
std::string best_tile(const StudyPage& page) {
  const StudyTable& table = page.table;
  for (std::size_t m = 0; m < table.metrics.size(); ++m) {
    std::vector<double> means, deviations;
    for (const TableRow& row : table.rows) {
      means.push_back(row.cells[m].summary.mean);
      deviations.push_back(row.cells[m].summary.sd.value_or(0));
    }
    for (const TableRow& row : table.rows)
      if (row.cells[m].best)
        return page_tile(
            group_label(table.by, row.group),
            fmt::format("the best mean {}, {}", table.metrics[m].name,
                        figure_text(row.cells[m].summary.mean, digits_for(means, deviations))));
  }
  return {};
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
      page.results.axes.empty()
          ? std::string("one trial")
          : html::escape(fmt::format("{}", fmt::join(page.results.axes, ", "))));
  text += page_tile(fmt::format("{} of {}", done, done + table.not_done.size()),
                    table.not_done.empty() ? "trials done" : "trials done; the others are below");
  text += page_tile(grouped(std::ssize(table.rows)),
                    table.by.empty() ? std::string("group")
                                     : fmt::format("groups of {}", fmt::join(table.by, ", ")));
  text += best_tile(page);
  if (seconds > 0) text += page_tile(html::duration(seconds), "of all trials together");
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
                 .spec = text_of_file(results.directory + "/study.toml"),
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
    page.configs[trial.number] = text_of_file(trial.directory + "/config.toml");
    if (const std::string report = trial.directory + "/report.html"; fs::exists(report, error))
      page.reports[trial.number] = link_from(path, report);
  }
  return page;
}

std::string study_page(const StudyPage& page) {
  std::string text = fmt::format(
      "<!DOCTYPE html>\n<html lang=\"en\"><head><meta charset=\"utf-8\"/>\n<meta name=\"viewport\" "
      "content=\"width=device-width, initial-scale=1\"/>\n<title>{} · concertina</title>\n<style>{}"
      "{}</style></head>\n<body><main>\n",
      html::escape(page.table.study), kReportStyle, kStudyStyle);
  text += page_header(page) + "<h2>Table</h2>\n" + table_text(page.table, TableFormat::html, TableCells::difference);
  text += curves_section(page) + step_time_section(page) + trials_section(page) +
          settings_section(page) + origin_section(page);
  return text + fmt::format("</main>\n<script>{}</script>\n</body></html>\n", kReportScript);
}

}  // namespace concertina
