#include "experiments/quality/clean_table.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "core/error.h"
#include "experiments/quality/quality_report.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

std::string dropped_line(const CheckedFiles& files, const RowFinding& finding) {
  std::string_view raw = files.raw(finding.row);
  while (raw.ends_with('\n') || raw.ends_with('\r')) raw.remove_suffix(1);
  const Json line{{"line", files.line_of(finding.row)},
                  {"fault", kRowFaultNames[static_cast<std::size_t>(finding.fault)]},
                  {"why", finding_text(files, finding)},
                  {"row", raw}};
  return line.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace

CleanedTable clean_table(const CheckedFiles& files, const std::vector<RowFault>& faults) {
  CleanedTable made{.table = std::string(files.head())};
  if (!made.table.empty() && !made.table.ends_with('\n')) made.table += '\n';
  auto finding = files.findings().begin();
  for (std::size_t row = 0; row < files.rows().size(); ++row) {
    const auto end = std::find_if(finding, files.findings().end(),
                                  [row](const RowFinding& one) { return one.row != row; });
    const auto worst = std::find_if(finding, end, [&](const RowFinding& one) {
      return std::ranges::find(faults, one.fault) != faults.end();
    });
    const bool dropped = worst != end;
    if (files.rows()[row].split == Split::train && dropped) {
      ++made.dropped;
      ++made.because[static_cast<std::size_t>(worst->fault)];
      made.dropped_rows += dropped_line(files, *worst);
    } else if (files.rows()[row].split == Split::train) {
      ++made.kept;
      made.table += files.raw(row);
      if (!made.table.ends_with('\n')) made.table += '\n';
    }
    finding = end;
  }
  if (made.kept == 0)
    throw_input("no row is left", "--drop",
                "fewer kinds of faults, or the right data.text_columns");
  return made;
}

}  // namespace concertina
