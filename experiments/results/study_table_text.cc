#include "experiments/results/study_table_text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "core/number_text.h"
#include "core/text_table.h"
#include "experiments/machine/machine.h"
#include "experiments/results/figure_names.h"
#include "experiments/results/study_claims.h"

namespace concertina {
namespace {

/// The digits and units of the cells of a metric.
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
    const std::string text = cell.never > 0
                                 ? fmt::format("never in {} of {}", cell.never, row.trials.size())
                             : summary.nan > 0      ? "NaN"
                             : summary.infinite > 0 ? "infinite"
                                                    : "—";
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

constexpr std::array<std::string_view, 5> kTableFormats = {"text", "csv", "markdown", "latex",
                                                           "html"};
constexpr std::array<std::string_view, 4> kTableCells = {"mean-sd", "mean-ci", "difference",
                                                         "full"};

constexpr std::size_t kMostColumns = 140;  // characters of a line of text

std::string as_it_is(const std::string& text) {
  return text;
}
const TableWords kTextWords{" ± ", "Δ ", "-", "<", "*", "> ", "", as_it_is, true};

/// One line per line of the cells in these columns.
std::string text_block(const std::vector<std::vector<CellLines>>& rows,
                       const std::vector<std::size_t>& columns,
                       const std::vector<std::size_t>& widths, std::size_t right) {
  std::string text;
  for (const auto& row : rows) {
    std::size_t height = 1;  // of these columns
    for (const std::size_t c : columns) height = std::max(height, row[c].size());
    for (std::size_t l = 0; l < height; ++l) {
      for (const std::size_t c : columns)
        text += padded(l < row[c].size() ? row[c][l] : "", widths[c], c != right) + "  ";
      while (text.ends_with(' ')) text.pop_back();
      text += "\n";
    }
  }
  return text;
}

/// Metrics that do not fit beside the others go below them, with the groups again.
std::string plain_text(const StudyTable& table, TableCells cells) {
  const std::vector<std::string> heads = table_heads(table);
  std::vector<std::vector<CellLines>> rows = table_cells(table, kTextWords, cells);
  const std::size_t first_metric = heads.size() - table.metrics.size();
  std::vector<CellLines>& head = *rows.emplace(rows.begin());
  for (std::size_t c = 0; c < heads.size(); ++c)
    head.push_back({c < first_metric ? heads[c] : "  " + heads[c]});
  std::vector<std::size_t> widths(heads.size(), 0), groups;
  std::size_t group_width = 0;
  for (std::size_t c = 0; c < heads.size(); ++c) {
    for (const auto& row : rows)
      for (const std::string& line : row[c]) widths[c] = std::max(widths[c], width_of(line));
    if (c < first_metric) groups.push_back(c), group_width += widths[c] + 2;
  }
  std::string text = table_summary(table) + "\n";
  std::size_t c = first_metric;
  do {
    std::vector<std::size_t> columns = groups;
    std::size_t width = group_width;
    for (; c < heads.size(); ++c) {
      if (columns.size() > groups.size() && width + widths[c] > kMostColumns) break;
      columns.push_back(c);
      width += widths[c] + 2;
    }
    text += "\n" + text_block(rows, columns, widths, first_metric - 1);
  } while (c < heads.size());
  text += "\n";
  for (const SectionRows& section : table_sections(table)) text += text_table(section, 0) + "\n";
  for (const std::string& note : table_notes(table, cells)) text += note + "\n";
  return text;
}

bool any_cell(const StudyTable& table, bool (*is)(const TableCell&)) {
  return std::ranges::any_of(
      table.rows, [&](const TableRow& row) { return std::ranges::any_of(row.cells, is); });
}

/// Says what stands beside a mean.
std::string spread_note(const StudyTable& table, TableCells cells) {
  if (!any_cell(table, [](const TableCell& cell) { return cell.summary.n > 0; })) return {};
  if (!any_cell(table, [](const TableCell& cell) { return cell.summary.sd.has_value(); }))
    return "n = 1: no standard deviation, no interval";
  const std::string interval =
      fmt::format("[{:.4g}% interval of the mean] by Student's t", 100 * table.confidence);
  const std::string deviation = "mean ± standard deviation";
  return (cells == TableCells::mean_ci ? "mean " + interval
          : cells == TableCells::full  ? deviation + ", " + interval
                                       : deviation) +
         "; n: trials that are done";
}

/// How to read Δ, p and *.
std::string difference_note(const StudyTable& table, TableCells cells) {
  if (table.baseline.empty()) return {};
  const bool tested = any_cell(table, [](const TableCell& cell) { return cell.p.has_value(); });
  const std::string level = fmt::format("p < {:.4g}", 1 - table.confidence);
  if (cells == TableCells::difference || cells == TableCells::full)
    return fmt::format("Δ: difference to {}; {}{}", table.baseline, table.comparison,
                       tested ? ", *: " + level : "");
  return tested ? fmt::format("*: {} for the difference to {}; {}", level, table.baseline,
                              table.comparison)
                : "";
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

std::vector<SectionRows> table_sections(const StudyTable& table) {
  std::vector<SectionRows> sections;
  if (table.search) sections.push_back(rung_rows(*table.search));
  if (SectionRows rows = equivalence_rows(table); !rows.empty())
    sections.push_back(std::move(rows));
  if (table.front) sections.push_back(front_rows(*table.front));
  return sections;
}

std::size_t height_of(const std::vector<CellLines>& cells) {
  std::size_t height = 1;
  for (const CellLines& cell : cells) height = std::max(height, cell.size());
  return height;
}

std::string table_summary(const StudyTable& table) {
  std::size_t done = 0;
  for (const TableRow& row : table.rows) done += row.trials.size();
  return fmt::format("{}{}: {}, {} of {} trials done", table.loose ? "" : "study ", table.study,
                     counted(std::ssize(table.rows), "group"), done, done + table.not_done.size());
}

TableFormat table_format(const std::string& word) {
  return static_cast<TableFormat>(index_of(
      word, kTableFormats, fmt::format("a table cannot be written as '{}'", word), "--format"));
}

TableCells table_cells_kind(const std::string& word) {
  return static_cast<TableCells>(
      index_of(word, kTableCells, fmt::format("cells cannot be written as '{}'", word), "--cells"));
}

TableCells default_cells(TableFormat format) {
  return format == TableFormat::text ? TableCells::full : TableCells::mean_sd;
}

std::vector<std::string> table_notes(const StudyTable& table, TableCells cells) {
  if (!table.with_notes) return {};
  std::vector<std::string> lines;
  const bool marked = std::ranges::any_of(table.rows, [](const TableRow& row) {
    return std::ranges::any_of(row.cells, &TableCell::best);
  });
  if (marked) lines.emplace_back("↓ lower is better, ↑ higher is better; the best mean is marked");
  for (const std::string& line : {spread_note(table, cells), difference_note(table, cells)})
    if (!line.empty()) lines.push_back(line);
  std::ranges::copy(claim_lines(table), std::back_inserter(lines));
  if (table.search)
    for (const std::string& line : search_lines(*table.search)) lines.push_back(line);
  lines.insert(lines.end(), table.notes.begin(), table.notes.end());
  for (const CommonEnd& end : ends_of(table)) {
    if (table.search && end.state == TrialState::stopped && end.error.empty()) continue;
    const std::string numbers = to_ranges(numbers_of(end.trials));
    std::string line = fmt::format("{}: trial{} {}", name_of(end.state),
                                   end.trials.size() == 1 ? "" : "s", numbers);
    if (end.trials.size() == 1 && end.state != TrialState::open)
      line += fmt::format(" ({})", settings_text(end.trials.front()->settings));
    lines.push_back(end.error.empty() ? line : line + ": " + end.error);
  }
  return lines;
}

std::vector<CommonEnd> ends_of(const StudyTable& table) {
  std::vector<CommonEnd> ends;
  for (const TrialRecord& trial : table.not_done) {
    std::string error = trial.error;
    while (error.ends_with('\n')) error.pop_back();
    const auto found = std::ranges::find_if(
        ends, [&](const CommonEnd& end) { return end.state == trial.state && end.error == error; });
    if (found != ends.end())
      found->trials.push_back(&trial);
    else
      ends.push_back({.state = trial.state, .error = error, .trials = {&trial}});
  }
  std::ranges::stable_partition(ends,
                                [](const CommonEnd& end) { return end.state != TrialState::open; });
  return ends;
}

std::string table_text(const StudyTable& table, TableFormat format, TableCells cells) {
  switch (format) {
    case TableFormat::csv:
      return table_csv(table);
    case TableFormat::markdown:
      return table_markdown(table, cells);
    case TableFormat::latex:
      return table_latex(table, cells);
    case TableFormat::html:
      return table_html(table, cells);
    default:
      return plain_text(table, cells);
  }
}

}  // namespace concertina
