// The page of a look at data: figures, faults with examples, labels, lengths.
#include <fmt/format.h>

#include <algorithm>

#include "core/number_text.h"
#include "experiments/quality/quality_report.h"
#include "io/figure/page.h"

namespace concertina {
namespace {

using html::escape;

using HtmlRows = std::vector<std::vector<std::string>>;

std::string quality_tiles(const QualityReport& report) {
  const std::uint64_t all = report.rows[0] + report.rows[1] + report.rows[2];
  std::string text = "<div class=\"tiles\">\n";
  for (std::size_t s = 0; s < report.rows.size(); ++s)
    if (report.rows[s] > 0)
      text += html::tile(rows_text(report.rows[s]),
                         s == 0 ? "rows to train on" : fmt::format("rows of {}", kSplitNames[s]));
  text += html::tile(
      html::share_text(all == 0 ? 0 : static_cast<double>(report.sound) / static_cast<double>(all)),
      "of all rows have no fault");
  return text + "</div>\n";
}

std::string faults_section(const CheckedFiles& files, const QualityReport& report) {
  HtmlRows rows{{"fault", "rows", "a row that"}};
  std::string examples;
  for (std::size_t f = 0; f < kRowFaults; ++f) {
    rows.push_back({std::string(kRowFaultNames[f]), rows_text(report.faulty[f]),
                    std::string(kRowFaultMeanings[f])});
    if (report.first[f].empty()) continue;
    HtmlRows shown{{"where", "why", "text"}};
    for (const RowFinding& finding : report.first[f])
      shown.push_back({files.place_of(finding.row), finding_text(files, finding),
                       row_text(files, finding.row, 200)});
    examples += fmt::format("<details{}><summary>{}: {} of {}</summary>\n{}</details>\n",
                            f < 5 ? " open=\"open\"" : "", kRowFaultNames[f], shown.size() - 1,
                            rows_text(report.faulty[f]), html::table(shown, "rows"));
  }
  return "<h2>Faults</h2>\n<p class=\"lead\">Texts are the same that are so but for case and "
         "space. A row may have several faults.</p>\n" +
         html::table(rows, "rows") + examples;
}

std::string labels_section(const QualityReport& report) {
  if (report.labels.empty()) return "";
  HtmlRows rows{{"label", "training", "validation", "test"}};
  for (const auto& [label, of] : report.labels)
    rows.push_back({label, rows_text(of[0]), rows_text(of[1]), rows_text(of[2])});
  if (report.other_labels > 0)
    rows.push_back({fmt::format("and {} more", report.other_labels), "", "", ""});
  return "<h2>Labels</h2>\n" + html::table(rows, "rows");
}

std::string lengths_section(const QualityReport& report) {
  if (report.lengths.size() < 2) return "";
  LineSeries line{.name = "bytes"};
  for (std::size_t i = 0; i < report.lengths.size(); ++i) {
    line.x.push_back(100 * static_cast<double>(i) / static_cast<double>(report.lengths.size() - 1));
    line.y.push_back(report.lengths[i]);
  }
  return "<h2>Lengths</h2>\n" +
         html::figure("lengths", draw({.title = "Bytes of text of the sound rows",
                                       .x = {.label = "rows that are not longer", .unit = "%"},
                                       .y = {.label = "bytes", .from_zero = true},
                                       .marks = Lines{{line}},
                                       .width_in = html::kHalf,
                                       .height_in = 2.4}));
}

}  // namespace

std::string quality_page(const CheckedFiles& files, const QualityReport& report) {
  constexpr std::string_view kStyle =
      "table.rows td{text-align:left;vertical-align:top;overflow-wrap:anywhere}";
  return html::page("Data",
                    "<header><h1>Data</h1></header>\n" + quality_tiles(report) +
                        faults_section(files, report) + labels_section(report) +
                        lengths_section(report),
                    kStyle);
}

}  // namespace concertina
