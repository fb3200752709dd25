// `concertina compare`: runs beside each other, whoever launched them.
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "core/number_text.h"
#include "core/text_table.h"
#include "experiments/commands/study_options.h"
#include "experiments/results/measures.h"
#include "experiments/results/study_course.h"
#include "experiments/results/study_report.h"
#include "experiments/study/run_bits.h"
#include "experiments/study/run_set.h"
#include "io/figure/page.h"
#include "io/file.h"

namespace concertina {
namespace {

struct CompareCommand : GroupOptions {
  std::string output = "compare.html";
  bool same = false;
};

using Rows = std::vector<std::vector<std::string>>;

std::string name_of_run(const TrialRecord& run) {
  return cell_text(cell_of(run, kRunColumn));
}

/// A row for each key in which the configs differ; none if no two do.
Rows differences(const StudyResults& runs) {
  if (runs.axes.empty()) return {};
  Rows rows = {{"key"}};
  for (const TrialRecord& run : runs.trials) rows[0].push_back(name_of_run(run));
  for (const std::string& key : runs.axes) {
    std::vector<std::string>& row = rows.emplace_back(std::vector{key});
    for (const TrialRecord& run : runs.trials) {
      const std::string text = cell_text(cell_of(run, key));
      row.push_back(text.empty() ? "-" : text);
    }
  }
  return rows;
}

/// The highest of the runs' last held-out losses, which all of them came to; rounded up. None where
/// they cannot be compared.
std::optional<std::string> common_target(const StudyResults& runs) {
  constexpr double kDigits = 1e4;
  const Trials all = chosen_trials(runs, {});
  const std::string metric =
      why_unlike(all, "validation_loss").empty() ? "validation_loss" : kBitsPerByte;
  if (!why_unlike(all, metric).empty()) return std::nullopt;
  double worst = -HUGE_VAL;
  for (const TrialRecord& run : runs.trials) {
    if (!run.figures.contains(metric)) return std::nullopt;
    const StepCurve curve = curve_of(read_log(run.directory), metric);
    if (curve.value.empty() || !std::isfinite(curve.value.back())) return std::nullopt;
    worst = std::max(worst, curve.value.back());
  }
  return fmt::format("{}={}", metric, std::ceil(worst * kDigits) / kDigits);
}

/// What is known of the configs where no row of differences says it.
std::string same_configs(const StudyResults& runs) {
  std::vector<std::string> without;
  for (const TrialRecord& run : runs.trials)
    if (run.facts.contains(kNoConfig)) without.push_back(name_of_run(run));
  if (without.empty())
    return runs.axes.empty() ? "no key of the configs differs, but for where the runs are" : "";
  return fmt::format("{} {} no config: {} keys cannot be compared", fmt::join(without, ", "),
                     without.size() == 1 ? "has" : "have", without.size() == 1 ? "its" : "their");
}

/// Each run beside the first one.
std::vector<std::pair<std::string, BitsOfTwo>> bits_of(const StudyResults& runs) {
  std::vector<std::pair<std::string, BitsOfTwo>> bits;
  for (std::size_t r = 1; r < runs.trials.size(); ++r)
    bits.emplace_back(name_of_run(runs.trials[r]), compare_bits(runs.trials[0], runs.trials[r]));
  return bits;
}

/// What a page says first: configs, then bits.
std::string first_section(const Rows& rows, const std::string& note,
                          const std::vector<std::string>& bits) {
  std::string text = "<h2>Configs</h2>\n";
  if (!rows.empty()) text += html::table(rows);
  if (!note.empty()) text += "<p class=\"note\">" + html::escape(note) + "</p>\n";
  text += "<h2>Bits</h2>\n<ul class=\"note\">\n";
  for (const std::string& line : bits) text += "<li>" + html::escape(line) + "</li>\n";
  return text + "</ul>\n";
}

int run_compare(const CompareCommand& options) {
  require_output(options.output, "--out");
  GroupOptions asked = options;
  TableOptions chosen = table_options(options);
  const StudyResults runs = read_runs(options.folders);
  if (runs.trials.size() < 2)
    throw_input("one run alone is compared with nothing", options.folders[0],
                "two directories of runs, or a folder that has several");
  if (const auto target = common_target(runs); target && asked.targets.empty())
    asked.targets = {*target};
  chosen.mixed = true;
  chosen.contests = false;
  if (chosen.baseline.empty() && chosen.by.empty()) chosen.baseline = {"none"};
  const StudyResults results = with_targets(runs, asked, chosen);
  StudyPage page = load_study_page(results, chosen, options.output);
  const auto bits = bits_of(runs);
  std::vector<std::string> lines;
  for (const auto& [name, found] : bits)
    lines.push_back(
        fmt::format("{} against {}: {}", name, name_of_run(runs.trials[0]), bits_text(found)));
  const Rows rows = differences(runs);
  const std::string note = same_configs(runs);
  page.first = first_section(rows, note, lines);
  atomic_replace(options.output, study_page(page));
  const bool same = std::ranges::none_of(bits, [](const auto& one) { return one.second.differ(); });
  if (options.json) {
    nlohmann::ordered_json json = {{"differences", nlohmann::ordered_json::object()},
                                   {"configs", note},
                                   {"bits", nlohmann::ordered_json::object()},
                                   {"table", to_json(page.table)},
                                   {"page", options.output}};
    for (const std::string& key : runs.axes)
      for (const TrialRecord& run : runs.trials)
        json["differences"][key][name_of_run(run)] = cell_text(cell_of(run, key));
    for (const auto& [name, found] : bits) json["bits"][name] = to_json(found);
    print_once(json_line(json));
  } else {
    print_once(fmt::format(
        "{}{}{}\n{}\n{}\n{}\n", rows.empty() ? "" : text_table(rows, rows[0].size()), note,
        note.empty() ? "" : "\n", table_text(page.table, TableFormat::text, TableCells::full),
        fmt::join(lines, "\n"), options.output));
  }
  return options.same && !same ? static_cast<int>(Exit::failure) : 0;
}

void add_compare_options(CLI::App& app, CompareCommand& options) {
  add_group_options(app, options);
  app.add_option("--out", options.output, "the page")->type_name("FILE")->capture_default_str();
  app.add_flag("--same", options.same, "exit code 1 unless all runs are the same bits");
  add_json_option(app, options);
}

}  // namespace

Command command_compare() {
  return make_command<CompareCommand>(
      "runs beside each other: configs, figures, curves, and where their bits first differ",
      add_compare_options, run_compare);
}

}  // namespace concertina
