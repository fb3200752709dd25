#include "experiments/results/study_table_text.h"

#include <fmt/format.h>

#include <algorithm>

#include "experiments/results/figure_names.h"
#include "experiments/results/study_table.h"
#include "io/csv.h"
#include "io/figure/page.h"

namespace concertina {
namespace {

/// A blank in place of a control character, which would end the line or the document.
char printable(char c) {
  const auto code = static_cast<unsigned char>(c);
  return code < 0x20 || code == 0x7F ? ' ' : c;
}

std::string escape_markdown(const std::string& text) {
  std::string result;
  for (const char c : text) {
    if (std::string_view("\\`*_|<>[]$~&^#").find(c) != std::string_view::npos) result += '\\';
    result += printable(c);
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
    else if (c == '[' || c == ']' || c == '*')  // after the end of a row they would be its options
      result += fmt::format("{{{}}}", c);
    else if (rest.starts_with("±"))
      result += "$\\pm$", ++i;
    else if (rest.starts_with("Δ"))
      result += "$\\Delta$", ++i;
    else if (rest.starts_with("↓"))
      result += "$\\downarrow$", i += 2;
    else if (rest.starts_with("↑"))
      result += "$\\uparrow$", i += 2;
    else
      result += printable(c);
  }
  return result;
}

std::string escape_html(const std::string& text) {
  return html::escape(text);
}

std::string section_markdown(const SectionRows& rows) {
  std::string text;
  for (const auto& row : rows) {
    for (const std::string& cell : row) text += "| " + escape_markdown(cell) + " ";
    text += "|\n";
    if (text.find("|---") != std::string::npos) continue;
    for (std::size_t c = 0; c < row.size(); ++c) text += "|---:";
    text += "|\n";
  }
  return text;
}

std::string section_latex(const SectionRows& rows) {
  std::string text =
      fmt::format("\n\\begin{{tabular}}{{{}}}\n\\toprule\n", std::string(rows[0].size(), 'r'));
  for (std::size_t r = 0; r < rows.size(); ++r) {
    for (std::size_t c = 0; c < rows[r].size(); ++c)
      text += (c > 0 ? " & " : "") + escape_latex(rows[r][c]);
    text += r == 0 ? " \\\\\n\\midrule\n" : " \\\\\n";
  }
  return text + "\\bottomrule\n\\end{tabular}\n";
}

std::string section_html(const SectionRows& rows) {
  std::string text = "<div class=\"wide\"><table class=\"rungs\">\n";
  const char* tag = "th";
  for (const auto& row : rows) {
    text += "<tr>";
    for (const std::string& cell : row)
      text += fmt::format("<{0}>{1}</{0}>", tag, html::escape(cell));
    text += "</tr>\n";
    tag = "td";
  }
  return text + "</table></div>\n";
}

const TableWords kMarkdownWords{" ± ", "Δ ", "-", "<", "\\*", "**", "**", escape_markdown};
const TableWords kLatexWords{" $\\pm$ ", "$\\Delta$ ", "$-$", "$<$",
                             "*",        "\\textbf{",  "}",   escape_latex};
const TableWords kHtmlWords{" ± ", "Δ ", "−", "&lt;", "*", "<b>", "</b>", escape_html};

using TableJson = nlohmann::ordered_json;

/// The figures of a metric of a group by name; absent where there is none.
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
  if (cell.never > 0) json["never"] = cell.never;
  if (cell.equivalence) json["equivalence"] = to_json(*cell.equivalence);
  return json;
}

}  // namespace

std::string table_markdown(const StudyTable& table, TableCells cells) {
  const std::vector<std::string> heads = table_heads(table);
  std::string text, rule;
  for (std::size_t c = 0; c < heads.size(); ++c) {
    text += fmt::format("| {} ", escape_markdown(heads[c]));
    rule += c < table.by.size() ? "|---" : "|---:";
  }
  text += "|\n" + rule + "|\n";
  for (const auto& row : table_cells(table, kMarkdownWords, cells)) {
    for (const CellLines& cell : row) text += fmt::format("| {} ", fmt::join(cell, "<br>"));
    text += "|\n";
  }
  for (const SectionRows& rows : table_sections(table)) text += "\n" + section_markdown(rows);
  text += "\n" + escape_markdown(table_summary(table)) + "\n\n";
  for (const std::string& note : table_notes(table, cells))
    text += "- " + escape_markdown(note) + "\n";
  return text;
}

std::string table_latex(const StudyTable& table, TableCells cells) {
  const std::vector<std::string> heads = table_heads(table);
  const std::size_t texts = heads.size() - table.metrics.size() - 1;
  std::string text = fmt::format(
      "% \\usepackage{{booktabs}}; the lines below the table belong in its caption.\n"
      "\\begin{{tabular}}{{{}{}}}\n\\toprule\n",
      std::string(texts, 'l'), std::string(heads.size() - texts, 'r'));
  for (std::size_t c = 0; c < heads.size(); ++c)
    text += fmt::format("{}{}", c > 0 ? " & " : "", escape_latex(heads[c]));
  text += " \\\\\n\\midrule\n";
  for (const auto& row : table_cells(table, kLatexWords, cells)) {
    const std::size_t height = height_of(row);
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
  for (const SectionRows& rows : table_sections(table)) text += section_latex(rows);
  std::string summary = table_summary(table);
  std::ranges::transform(summary, summary.begin(), printable);  // a line break ends a comment
  text += "\n% " + summary + "\n{\\footnotesize\n";
  for (const std::string& note : table_notes(table, cells))
    text += "\\par\\noindent " + escape_latex(note) + "\n";
  return text + "\\par}\n";
}

std::string table_html(const StudyTable& table, TableCells cells) {
  const std::size_t groups = std::max<std::size_t>(1, table.by.size());
  std::string text = "<div class=\"wide\"><table class=\"study\">\n<tr>";
  std::size_t column = 0;
  for (const std::string& head : table_heads(table))
    text += fmt::format("<th{}>{}</th>", column++ < groups ? " class=\"group\"" : "",
                        html::escape(head));
  text += "</tr>\n";
  for (const auto& row : table_cells(table, kHtmlWords, cells)) {
    text += "<tr>";
    for (std::size_t c = 0; c < row.size(); ++c) {
      text += c < groups ? "<td class=\"group\">" : "<td>";
      text += row[c].front();
      for (std::size_t l = 1; l < row[c].size(); ++l)
        text += fmt::format("<small>{}</small>", row[c][l]);
      text += "</td>";
    }
    text += "</tr>\n";
  }
  text += "</table></div>\n";
  for (const SectionRows& rows : table_sections(table)) text += section_html(rows);
  text += "<ul class=\"note\">\n";
  for (const std::string& note : table_notes(table, cells))
    text += fmt::format("<li>{}</li>\n", html::escape(note));
  return text + "</ul>\n";
}

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
  if (table.claim)
    json["claim"] = {{"metric", table.claim->metric},
                     {"margin", table.claim->margin},
                     {"alpha", table.claim->alpha},
                     {"in_file", table.claim_in_file}};
  if (table.front) json["front"] = to_json(*table.front);
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
