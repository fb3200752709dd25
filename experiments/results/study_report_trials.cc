#include <fmt/format.h>
#include <toml++/toml.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <set>
#include <sstream>

#include "core/number_text.h"
#include "experiments/machine/machine.h"
#include "experiments/report/html.h"
#include "experiments/report/report_page.h"
#include "experiments/results/figure_names.h"
#include "experiments/results/study_report_sections.h"
#include "io/run_files.h"

namespace concertina {
namespace {

using html::escape;

std::string page_figure(const Cell& cell, double factor) {
  const auto* found = std::get_if<double>(&cell);
  if (found == nullptr) return escape(cell_text(cell));
  const double number = factor * *found;
  if (std::abs(number) >= 1e4 && std::abs(number) < 1e15) return grouped(std::llround(number));
  return std::isfinite(number) ? fmt::format("{:.5g}", number) : number_text(number);
}

std::string trial_link(const StudyPage& page, int number) {
  for (const auto* links : {&page.reports, &page.runs})
    if (const auto link = links->find(number); link != links->end())
      return fmt::format("<a href=\"{}\">{}{}</a>", escape(link->second), number,
                         links == &page.reports ? " (report)" : "");
  return fmt::format("{}", number);
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

void flatten_config(const toml::table& table, const std::string& path,
                    std::map<std::string, std::string>& keys) {
  for (const auto& [key, node] : table) {
    const std::string name = path.empty() ? std::string(key) : path + "." + std::string(key);
    if (const toml::table* inner = node.as_table()) {
      flatten_config(*inner, name, keys);
      continue;
    }
    std::ostringstream value;
    value << toml::node_view<const toml::node>(node);
    keys[name] = value.str();
  }
}

/// By key, the trials that have each value. A config that cannot be read is left out.
std::map<std::string, std::map<std::string, std::vector<int>>> config_values(
    const StudyPage& page) {
  std::map<std::string, std::map<std::string, std::vector<int>>> values;
  for (const auto& [number, text] : page.configs) {
    std::map<std::string, std::string> keys;
    try {
      flatten_config(toml::parse(text), "", keys);
    } catch (const toml::parse_error&) {
      continue;
    }
    for (const auto& [key, value] : keys) values[key][value].push_back(number);
  }
  return values;
}

std::string values_row(const std::string& key,
                       const std::map<std::string, std::vector<int>>& values) {
  std::string text;
  for (const auto& [value, trials] : values)
    text += fmt::format("{}{} (trial{} {})", text.empty() ? "" : "; ", value,
                        trials.size() == 1 ? "" : "s", to_ranges(trials));
  return fmt::format("<tr><td>{}</td><td>{}</td></tr>\n", escape(key), escape(text));
}

std::string folded(const std::string& summary, const std::string& text) {
  if (text.empty()) return {};
  return fmt::format("<details><summary>{}</summary><pre>{}</pre></details>\n", escape(summary),
                     escape(text));
}

}  // namespace

std::string trials_section(const StudyPage& page) {
  const Trials trials = shown_trials(page);
  std::string text = "<h2>Trials</h2>\n<div class=\"wide\"><table><tr><th>trial</th>";
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

std::string settings_section(const StudyPage& page) {
  std::string text = "<h2>Settings</h2>\n<div class=\"wide\"><table class=\"about\">\n";
  for (const std::string& axis : page.results.axes) {
    std::vector<std::string> values;
    for (const TrialRecord& trial : page.results.trials)
      if (const std::string value = cell_text(cell_of(trial, axis));
          !value.empty() && std::ranges::find(values, value) == values.end())
        values.push_back(value);
    constexpr std::size_t kMostValues = 40;
    const std::size_t all = values.size();
    if (all > kMostValues) values.resize(kMostValues);
    text += fmt::format("<tr><td>{}</td><td>{}{}</td></tr>\n", escape(axis),
                        escape(fmt::format("{}", fmt::join(values, ", "))),
                        all > kMostValues ? fmt::format(" and {} more", all - kMostValues) : "");
  }
  text += "</table></div>\n";
  std::string others;
  for (const auto& [key, values] : config_values(page)) {
    const bool own = key == "run.dir" || key == "run.name" ||
                     std::ranges::find(page.results.axes, key) != page.results.axes.end();
    if (values.size() > 1 && !own) others += values_row(key, values);
  }
  if (!page.configs.empty())
    text += others.empty()
                ? std::string(
                      "<p class=\"note\">No other key differs between the configs of the "
                      "runs.</p>\n")
                : "<p class=\"note\">Other keys that differ between the configs of the runs:</p>\n"
                  "<div class=\"wide\"><table class=\"about\">\n" +
                      others + "</table></div>\n";
  text += folded(std::filesystem::path(page.results.file).filename().string(), page.spec);
  if (!page.configs.empty())
    text += folded(fmt::format("{} of trial {}", kConfigFile, page.configs.begin()->first),
                   page.configs.begin()->second);
  return text;
}

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

}  // namespace concertina
