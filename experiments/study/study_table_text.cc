#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "core/error.h"
#include "core/nearest.h"
#include "experiments/run/machine.h"
#include "experiments/study/figure_digits.h"
#include "experiments/study/study_progress.h"
#include "experiments/study/study_table.h"

namespace concertina {
namespace {

constexpr std::array<std::string_view, 4> kTableFormats = {"text", "csv", "markdown", "latex"};

constexpr std::size_t kMostColumns = 140;  // characters of a line of text

/// The lines of a cell: mean and deviation; interval; difference to the baseline.
using CellLines = std::vector<std::string>;

/// How a format writes what is not in all character sets.
struct TableWords {
  std::string plus_minus, delta, minus, less, star, best_before, best_after;
  std::string (*escape)(const std::string&);
};

std::string as_it_is(const std::string& text) {
  return text;
}

std::string escape_markdown(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (std::string_view("\\`*_|<>[]").find(c) != std::string_view::npos) result += '\\';
    result += c == '\n' ? ' ' : c;
  }
  return result;
}

std::string escape_latex(const std::string& text) {
  std::string result;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char c = text[i];
    const std::string_view rest = std::string_view(text).substr(i);
    if (std::string_view("&%$#_{}").find(c) != std::string_view::npos)
      result += fmt::format("\\{}", c);
    else if (c == '\\')
      result += "\\textbackslash{}";
    else if (c == '|')
      result += "\\textbar{}";
    else if (c == '~')
      result += "\\textasciitilde{}";
    else if (c == '^')
      result += "\\textasciicircum{}";
    else if (c == '<' || c == '>')
      result += fmt::format("${}$", c);
    else if (rest.starts_with("±"))
      result += "$\\pm$", ++i;
    else if (rest.starts_with("Δ"))
      result += "$\\Delta$", ++i;
    else if (rest.starts_with("↓"))
      result += "$\\downarrow$", i += 2;
    else if (rest.starts_with("↑"))
      result += "$\\uparrow$", i += 2;
    else
      result += c == '\n' ? ' ' : c;
  }
  return result;
}

TableWords words_of(TableFormat format) {
  switch (format) {
    case TableFormat::markdown:
      return {" ± ", "Δ ", "-", "<", "\\*", "**", "**", escape_markdown};
    case TableFormat::latex:
      return {" $\\pm$ ", "$\\Delta$ ", "$-$", "$<$", "*", "\\textbf{", "}", escape_latex};
    default:
      return {" ± ", "Δ ", "-", "<", "*", "> ", "", as_it_is};
  }
}

/// Characters, not bytes, of UTF-8.
std::size_t width_of(const std::string& text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](char c) { return (c & 0xC0) != 0x80; }));
}

std::string padded(const std::string& text, std::size_t width, bool left = true) {
  const std::string space(width - std::min(width, width_of(text)), ' ');
  return left ? text + space : space + text;
}

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
                      const TableWords& words, bool aligned) {
  const SampleSummary& summary = cell.summary;
  if (summary.n == 0) {
    const std::string text = summary.nan > 0 ? "NaN" : summary.infinite > 0 ? "infinite" : "-";
    return aligned ? "  " + padded(text, style.width, false) : text;
  }
  std::string mean = cell_figure(summary.mean, style.digits, words);
  if (aligned) mean = padded(mean, style.width, false);
  std::string text = aligned && !cell.best ? "  " : "";
  text += cell.best ? words.best_before + mean + words.best_after : mean;
  if (summary.sd) text += words.plus_minus + figure_text(*summary.sd, style.digits);
  if (static_cast<std::size_t>(summary.n) != done) text += fmt::format(" (n {})", summary.n);
  return text;
}

CellLines lines_of(const StudyTable& table, const TableRow& row, std::size_t metric,
                   const CellStyle& style, const TableWords& words, bool aligned) {
  const TableCell& cell = row.cells[metric];
  const SampleSummary& summary = cell.summary;
  const char* space = aligned ? "  " : "";
  CellLines lines = {mean_line(cell, row.trials.size(), style, words, aligned)};
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
  return metric.name + (metric.better == Better::lower    ? " ↓"
                        : metric.better == Better::higher ? " ↑"
                                                          : "");
}

std::vector<std::string> heads_of(const StudyTable& table) {
  std::vector<std::string> heads = table.by;
  if (table.by.empty()) heads.emplace_back("group");
  heads.emplace_back("n");
  for (const MetricColumn& metric : table.metrics) heads.push_back(metric_head(metric));
  return heads;
}

/// All cells of all rows, as lines: group, n, metrics.
std::vector<std::vector<CellLines>> all_lines(const StudyTable& table, TableFormat format) {
  const TableWords words = words_of(format);
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
      cells.push_back(lines_of(table, row, m, styles[m], words, format == TableFormat::text));
  }
  return rows;
}

std::string summary_line(const StudyTable& table) {
  std::size_t done = 0;
  for (const TableRow& row : table.rows) done += row.trials.size();
  return fmt::format("study {}: {} groups, {} of {} trials done", table.study, table.rows.size(),
                     done, done + table.not_done.size());
}

/// One line per line of the cells in these columns.
std::string text_block(const std::vector<std::vector<CellLines>>& rows,
                       const std::vector<std::size_t>& columns,
                       const std::vector<std::size_t>& widths, std::size_t right) {
  std::string text;
  for (const auto& row : rows) {
    std::size_t height = 1;
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
std::string plain_text(const StudyTable& table) {
  const std::vector<std::string> heads = heads_of(table);
  std::vector<std::vector<CellLines>> rows = all_lines(table, TableFormat::text);
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
  std::string text = summary_line(table) + "\n";
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
  for (const std::string& note : table_notes(table)) text += note + "\n";
  return text;
}

std::string markdown(const StudyTable& table) {
  const std::vector<std::string> heads = heads_of(table);
  std::string text, rule;
  for (std::size_t c = 0; c < heads.size(); ++c) {
    text += fmt::format("| {} ", escape_markdown(heads[c]));
    rule += c < table.by.size() ? "|---" : "|---:";
  }
  text += "|\n" + rule + "|\n";
  for (const auto& row : all_lines(table, TableFormat::markdown)) {
    for (const CellLines& cell : row) text += fmt::format("| {} ", fmt::join(cell, "<br>"));
    text += "|\n";
  }
  text += "\n" + escape_markdown(summary_line(table)) + "\n\n";
  for (const std::string& note : table_notes(table)) text += "- " + escape_markdown(note) + "\n";
  return text;
}

std::string latex(const StudyTable& table) {
  const std::vector<std::string> heads = heads_of(table);
  const std::size_t texts = heads.size() - table.metrics.size() - 1;
  std::string text = fmt::format(
      "% \\usepackage{{booktabs}}; the lines below the table belong in its caption.\n"
      "\\begin{{tabular}}{{{}{}}}\n\\toprule\n",
      std::string(texts, 'l'), std::string(heads.size() - texts, 'r'));
  for (std::size_t c = 0; c < heads.size(); ++c)
    text += fmt::format("{}{}", c > 0 ? " & " : "", escape_latex(heads[c]));
  text += " \\\\\n\\midrule\n";
  for (const auto& row : all_lines(table, TableFormat::latex)) {
    std::size_t height = 1;
    for (const CellLines& cell : row) height = std::max(height, cell.size());
    for (std::size_t l = 0; l < height; ++l) {
      for (std::size_t c = 0; c < row.size(); ++c) {
        const std::string cell = l < row[c].size() ? row[c][l] : "";
        text += fmt::format("{}{}", c > 0 ? " & " : "",
                            l == 0 || cell.empty() ? cell : "{\\scriptsize " + cell + "}");
      }
      // The lines of a group stay on one page.
      text += l + 1 < height ? " \\\\*\n" : " \\\\\n";
    }
  }
  text += "\\bottomrule\n\\end{tabular}\n";
  text += "\n% " + summary_line(table) + "\n{\\footnotesize\n";
  for (const std::string& note : table_notes(table))
    text += "\\par\\noindent " + escape_latex(note) + "\n";
  return text + "\\par}\n";
}

}  // namespace

TableFormat table_format(const std::string& word) {
  const auto found = std::ranges::find(kTableFormats, word);
  if (found == kTableFormats.end())
    throw_input(fmt::format("a table cannot be written as '{}'", word), "--format",
                one_of(nearest_word(word, kTableFormats), kTableFormats));
  return static_cast<TableFormat>(found - kTableFormats.begin());
}

std::vector<std::string> table_notes(const StudyTable& table) {
  std::vector<std::string> lines;
  const bool marked = std::ranges::any_of(table.rows, [](const TableRow& row) {
    return std::ranges::any_of(row.cells, &TableCell::best);
  });
  if (marked) lines.emplace_back("↓ lower is better, ↑ higher is better; > (or bold): the best");
  lines.insert(lines.end(), table.notes.begin(), table.notes.end());
  std::vector<int> open;
  for (const TrialRecord& trial : table.not_done) {
    if (trial.state == TrialState::open) {
      open.push_back(trial.number);
      continue;
    }
    std::string line = fmt::format("{}: trial {} ({})", name_of(trial.state), trial.number,
                                   settings_text(trial.settings));
    if (!trial.error.empty()) line += ": " + trial.error;
    while (line.ends_with('\n')) line.pop_back();
    lines.push_back(line);
  }
  if (!open.empty())
    lines.push_back(fmt::format("open: trial{} {}", open.size() == 1 ? "" : "s", to_ranges(open)));
  return lines;
}

std::string table_text(const StudyTable& table, TableFormat format) {
  switch (format) {
    case TableFormat::csv:
      return table_csv(table);
    case TableFormat::markdown:
      return markdown(table);
    case TableFormat::latex:
      return latex(table);
    default:
      return plain_text(table);
  }
}

}  // namespace concertina
