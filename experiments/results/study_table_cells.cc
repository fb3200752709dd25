#include "experiments/results/study_table_cells.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/number_text.h"
#include "experiments/results/figure_digits.h"
#include "experiments/results/figure_names.h"

namespace concertina {
namespace {

/// What the cells of a metric are written with.
struct CellStyle {
  TableCells kind = TableCells::full;
  double factor = 1;  // to the unit that is shown
  FigureDigits digits{}, difference_digits{};
  std::size_t width = 0;  // of the longest mean
};

CellStyle style_of(const StudyTable& table, std::size_t metric, TableCells kind) {
  CellStyle style{.kind = kind, .factor = name_of_figure(table.metrics[metric].name).factor};
  std::vector<double> means, deviations, differences, widths;
  for (const TableRow& row : table.rows) {
    const TableCell& cell = row.cells[metric];
    if (cell.summary.n > 0) means.push_back(style.factor * cell.summary.mean);
    deviations.push_back(style.factor * cell.summary.sd.value_or(0));
    if (!cell.difference) continue;
    differences.push_back(style.factor * cell.difference->difference);
    widths.push_back(style.factor * cell.difference->half_width.value_or(0));
  }
  style.digits = digits_for(means, deviations);
  style.difference_digits = digits_for(differences, widths);
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

std::string interval_text(const SampleSummary& summary, const CellStyle& style,
                          const TableWords& words) {
  const auto text_of = [&](double value) {
    return cell_figure(style.factor * value, style.digits, words);
  };
  return fmt::format("[{} to {}]", text_of(summary.mean - *summary.half_width),
                     text_of(summary.mean + *summary.half_width));
}

bool shows_difference(TableCells kind) {
  return kind == TableCells::difference || kind == TableCells::full;
}

/// The best is marked, or where none is but may be, takes the same space.
std::string mean_line(const StudyTable& table, const TableRow& row, const TableCell& cell,
                      const CellStyle& style, const TableWords& words) {
  const SampleSummary& summary = cell.summary;
  if (summary.n == 0) {
    const std::string text = summary.nan > 0 ? "NaN" : summary.infinite > 0 ? "infinite" : "-";
    return words.aligned ? fmt::format("  {:>{}}", text, style.width) : text;
  }
  std::string mean = cell_figure(style.factor * summary.mean, style.digits, words);
  if (words.aligned) mean = fmt::format("{:>{}}", mean, style.width);
  std::string text = words.aligned && !cell.best ? "  " : "";
  text += cell.best ? words.best_before + mean + words.best_after : mean;
  if (style.kind == TableCells::mean_ci && summary.half_width)
    text += " " + interval_text(summary, style, words);
  else if (summary.sd)
    text += words.plus_minus +
            (*summary.sd == 0 ? "0" : figure_text(style.factor * *summary.sd, style.digits));
  if (!shows_difference(style.kind) && table.significant(cell.p)) text += " " + words.star;
  if (static_cast<std::size_t>(summary.n) != row.trials.size())
    text += fmt::format(" (n {})", summary.n);
  return text;
}

CellLines lines_of(const StudyTable& table, const TableRow& row, std::size_t metric,
                   const CellStyle& style, const TableWords& words) {
  const TableCell& cell = row.cells[metric];
  const char* space = words.aligned ? "  " : "";
  CellLines lines = {mean_line(table, row, cell, style, words)};
  if (style.kind == TableCells::full && cell.summary.half_width.value_or(0) > 0)
    lines.push_back(space + interval_text(cell.summary, style, words));
  if (!cell.difference || !shows_difference(style.kind)) return lines;
  const SampleDifference& difference = *cell.difference;
  std::string text = fmt::format(
      "{}{}{}{}", space, words.delta, difference.difference > 0 ? "+" : "",
      cell_figure(style.factor * difference.difference, style.difference_digits, words));
  if (cell.p) text += ", " + p_text(*cell.p, words);
  if (table.significant(cell.p)) text += " " + words.star;
  lines.push_back(text);
  return lines;
}

std::string metric_head(const MetricColumn& metric) {
  return name_of_figure(metric.name).title + (metric.better == BetterEnd::lower    ? " ↓"
                                              : metric.better == BetterEnd::higher ? " ↑"
                                                                                   : "");
}

}  // namespace

std::vector<std::string> table_heads(const StudyTable& table) {
  std::vector<std::string> heads;
  for (const std::string& column : table.by) heads.push_back(name_of_figure(column).title);
  if (table.by.empty()) heads.emplace_back("group");
  heads.emplace_back("n");
  for (const MetricColumn& metric : table.metrics) heads.push_back(metric_head(metric));
  return heads;
}

std::vector<std::vector<CellLines>> table_cells(const StudyTable& table, const TableWords& words,
                                                TableCells kind) {
  std::vector<CellStyle> styles;
  for (std::size_t m = 0; m < table.metrics.size(); ++m) styles.push_back(style_of(table, m, kind));
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

std::vector<std::string> printed_means(const StudyTable& table, std::size_t metric) {
  const CellStyle style = style_of(table, metric, TableCells::full);
  std::vector<std::string> means;
  for (const TableRow& row : table.rows)
    means.push_back(figure_text(style.factor * row.cells[metric].summary.mean, style.digits));
  return means;
}

std::size_t height_of(const std::vector<CellLines>& cells) {
  std::size_t height = 1;
  for (const CellLines& cell : cells) height = std::max(height, cell.size());
  return height;
}

std::string table_summary(const StudyTable& table) {
  std::size_t done = 0;
  for (const TableRow& row : table.rows) done += row.trials.size();
  return fmt::format("study {}: {}, {} of {} trials done", table.study,
                     counted(std::ssize(table.rows), "group"), done, done + table.not_done.size());
}

}  // namespace concertina
