#include "experiments/study/study_table_cells.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/study/figure_digits.h"

namespace concertina {
namespace {

/// What the cells of a metric are written with.
struct CellStyle {
  FigureDigits digits, difference_digits;
  std::size_t width = 0;  // of the longest mean
};

CellStyle style_of(const StudyTable& table, std::size_t metric) {
  std::vector<double> means, deviations, differences, widths;
  for (const TableRow& row : table.rows) {
    const TableCell& cell = row.cells[metric];
    if (cell.summary.n > 0) means.push_back(cell.summary.mean);
    deviations.push_back(cell.summary.sd.value_or(0));
    if (!cell.difference) continue;
    differences.push_back(cell.difference->difference);
    widths.push_back(cell.difference->half_width.value_or(0));
  }
  CellStyle style{digits_for(means, deviations), digits_for(differences, widths)};
  for (const double mean : means)
    style.width = std::max(style.width, figure_text(mean, style.digits).size());
  return style;
}

std::string p_text(double p, const TableWords& words) {
  return p < 0.001 ? fmt::format("p {} 0.001", words.less) : fmt::format("p {:.2g}", p);
}

std::string cell_figure(double value, const FigureDigits& digits, const TableWords& words) {
  const std::string text = figure_text(value, digits);
  return text.front() == '-' ? words.minus + text.substr(1) : text;
}

/// The best is marked, or where none is but may be, takes the same space.
std::string mean_line(const TableCell& cell, std::size_t done, const CellStyle& style,
                      const TableWords& words) {
  const SampleSummary& summary = cell.summary;
  if (summary.n == 0) {
    const std::string text = summary.nan > 0 ? "NaN" : summary.infinite > 0 ? "infinite" : "-";
    return words.aligned ? fmt::format("  {:>{}}", text, style.width) : text;
  }
  std::string mean = cell_figure(summary.mean, style.digits, words);
  if (words.aligned) mean = fmt::format("{:>{}}", mean, style.width);
  std::string text = words.aligned && !cell.best ? "  " : "";
  text += cell.best ? words.best_before + mean + words.best_after : mean;
  if (summary.sd) text += words.plus_minus + figure_text(*summary.sd, style.digits);
  if (static_cast<std::size_t>(summary.n) != done) text += fmt::format(" (n {})", summary.n);
  return text;
}

CellLines lines_of(const StudyTable& table, const TableRow& row, std::size_t metric,
                   const CellStyle& style, const TableWords& words) {
  const TableCell& cell = row.cells[metric];
  const SampleSummary& summary = cell.summary;
  const char* space = words.aligned ? "  " : "";
  CellLines lines = {mean_line(cell, row.trials.size(), style, words)};
  const auto text_of = [&](double value) { return cell_figure(value, style.digits, words); };
  if (summary.half_width.value_or(0) > 0)
    lines.push_back(fmt::format("{}[{} to {}]", space, text_of(summary.mean - *summary.half_width),
                                text_of(summary.mean + *summary.half_width)));
  if (!cell.difference) return lines;
  const SampleDifference& difference = *cell.difference;
  std::string text =
      fmt::format("{}{}{}{}", space, words.delta, difference.difference > 0 ? "+" : "",
                  cell_figure(difference.difference, style.difference_digits, words));
  if (difference.p) text += ", " + p_text(*difference.p, words);
  if (table.significant(difference)) text += " " + words.star;
  lines.push_back(text);
  return lines;
}

std::string metric_head(const MetricColumn& metric) {
  return metric.name + (metric.better == BetterEnd::lower    ? " ↓"
                        : metric.better == BetterEnd::higher ? " ↑"
                                                             : "");
}

}  // namespace

std::vector<std::string> table_heads(const StudyTable& table) {
  std::vector<std::string> heads = table.by;
  if (table.by.empty()) heads.emplace_back("group");
  heads.emplace_back("n");
  for (const MetricColumn& metric : table.metrics) heads.push_back(metric_head(metric));
  return heads;
}

std::vector<std::vector<CellLines>> table_cells(const StudyTable& table, const TableWords& words) {
  std::vector<CellStyle> styles;
  for (std::size_t m = 0; m < table.metrics.size(); ++m) styles.push_back(style_of(table, m));
  std::vector<std::vector<CellLines>> rows;
  for (const TableRow& row : table.rows) {
    std::vector<CellLines>& cells = rows.emplace_back();
    for (const std::string& value : row.group)
      cells.push_back({words.escape(value.empty() ? "(none)" : value)});
    if (table.by.empty()) cells.push_back({"all"});
    if (row.baseline) cells.front().push_back("(baseline)");
    cells.push_back({fmt::format("{}", row.trials.size())});
    for (std::size_t m = 0; m < table.metrics.size(); ++m)
      cells.push_back(lines_of(table, row, m, styles[m], words));
  }
  return rows;
}

std::size_t height_of(const std::vector<CellLines>& cells) {
  std::size_t height = 1;
  for (const CellLines& cell : cells) height = std::max(height, cell.size());
  return height;
}

std::string table_summary(const StudyTable& table) {
  std::size_t done = 0;
  for (const TableRow& row : table.rows) done += row.trials.size();
  return fmt::format("study {}: {} groups, {} of {} trials done", table.study, table.rows.size(),
                     done, done + table.not_done.size());
}

}  // namespace concertina
