#include <fmt/format.h>

#include "experiments/results/figure_names.h"
#include "experiments/results/study_table.h"
#include "io/csv.h"

namespace concertina {
namespace {

using TableJson = nlohmann::ordered_json;

/// What a table says of a metric of a group: name and number, nothing where there is none.
std::vector<std::pair<const char*, std::optional<double>>> cell_figures(const TableCell& cell) {
  const SampleSummary& summary = cell.summary;
  const auto& difference = cell.difference;
  std::optional<double> mean, low, high, moved, moved_low, moved_high, p, shown;
  if (summary.n > 0) mean = summary.mean;
  if (summary.half_width) {
    low = summary.mean - *summary.half_width;
    high = summary.mean + *summary.half_width;
  }
  if (difference) {
    moved = difference->difference;
    p = difference->p;
    shown = cell.p;
    if (difference->half_width) {
      moved_low = *moved - *difference->half_width;
      moved_high = *moved + *difference->half_width;
    }
  }
  return {{"mean", mean},
          {"sd", summary.sd},
          {"ci_low", low},
          {"ci_high", high},
          {"difference", moved},
          {"difference_ci_low", moved_low},
          {"difference_ci_high", moved_high},
          {"p_single", p},
          {"p", shown}};
}

TableJson to_json(const StudyTable& table, const TableCell& cell) {
  const SampleSummary& summary = cell.summary;
  TableJson json = {{"n", summary.n}};
  for (const auto& [name, value] : cell_figures(cell))
    if (value) json[name] = *value;
  if (cell.difference) {
    json["test"] = name_of(cell.difference->test);
    json["pairs"] = cell.difference->pairs;
    json["significant"] = table.significant(cell.p);
  }
  json["best"] = cell.best;
  json["like_best"] = cell.like_best;
  if (summary.nan > 0) json["nan"] = summary.nan;
  if (summary.infinite > 0) json["infinite"] = summary.infinite;
  if (cell.missing > 0) json["missing"] = cell.missing;
  return json;
}

}  // namespace

std::string table_csv(const StudyTable& table) {
  std::vector<std::string> heads = table.by;
  heads.insert(heads.end(), {"n", "not_done"});
  for (const MetricColumn& metric : table.metrics) {
    heads.push_back(metric.name + "_n");
    for (const auto& [name, value] : cell_figures({})) heads.push_back(metric.name + "_" + name);
  }
  std::string text = csv_line(heads);
  for (const TableRow& row : table.rows) {
    std::vector<std::string> cells = row.group;
    cells.push_back(fmt::format("{}", row.trials.size()));
    cells.push_back(fmt::format("{}", row.others));
    for (const TableCell& cell : row.cells) {
      cells.push_back(fmt::format("{}", cell.summary.n));
      for (const auto& [name, value] : cell_figures(cell))
        cells.push_back(value ? cell_text(*value) : "");
    }
    text += csv_line(cells);
  }
  return text;
}

nlohmann::ordered_json to_json(const StudyTable& table) {
  TableJson json = {{"study", table.study}, {"confidence", table.confidence}, {"by", table.by}};
  json["metrics"] = TableJson::array();
  for (const MetricColumn& metric : table.metrics) {
    constexpr const char* kWays[] = {nullptr, "lower", "higher"};
    const char* way = kWays[static_cast<int>(metric.better)];
    json["metrics"].push_back({{"name", metric.name},
                               {"title", name_of_figure(metric.name).title},
                               {"better", way ? TableJson(way) : TableJson()}});
  }
  json["baseline"] = table.baseline;
  json["comparison"] = table.comparison;
  json["groups"] = TableJson::array();
  for (const TableRow& row : table.rows) {
    TableJson group = {{"values", TableJson::object()}, {"n", row.trials.size()},
                       {"trials", row.trials},          {"not_done", row.others},
                       {"baseline", row.baseline},      {"metrics", TableJson::object()}};
    for (std::size_t i = 0; i < table.by.size(); ++i) group["values"][table.by[i]] = row.group[i];
    for (std::size_t m = 0; m < table.metrics.size(); ++m)
      group["metrics"][table.metrics[m].name] = to_json(table, row.cells[m]);
    json["groups"].push_back(group);
  }
  if (table.search) json["search"] = to_json(*table.search);
  json["notes"] = table.notes;
  json["not_done"] = TableJson::array();
  for (const TrialRecord& trial : table.not_done) {
    TableJson settings = TableJson::object();
    for (const auto& [key, value] : trial.settings) settings[key] = value;
    json["not_done"].push_back({{"trial", trial.number},
                                {"state", name_of(trial.state)},
                                {"settings", settings},
                                {"error", trial.error}});
  }
  return json;
}

}  // namespace concertina
