#include "experiments/quality/quality_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "core/number_text.h"

namespace concertina {
namespace {

constexpr std::size_t kExamples = 20, kLabelsListed = 50, kTenths = 10;

std::uint64_t all_rows(const QualityReport& report) {
  return report.rows[0] + report.rows[1] + report.rows[2];
}

double share(std::uint64_t part, std::uint64_t whole) {
  return whole == 0 ? 0 : static_cast<double>(part) / static_cast<double>(whole);
}

void count_labels(const CheckedFiles& files, QualityReport& report) {
  std::map<std::string_view, std::array<std::uint64_t, 3>> counts;
  for (const CheckedRow& row : files.rows())
    if (row.broken.empty()) ++counts[row.label][static_cast<std::size_t>(row.split)];
  for (const auto& [label, of] : counts) report.labels.emplace_back(label, of);
  std::ranges::stable_sort(report.labels, [](const auto& a, const auto& b) {
    return a.second[0] + a.second[1] + a.second[2] > b.second[0] + b.second[1] + b.second[2];
  });
  if (report.labels.size() <= kLabelsListed) return;
  report.other_labels = report.labels.size() - kLabelsListed;
  report.labels.resize(kLabelsListed);
}

std::string looked_for(const CheckedFiles& files, RowFault fault) {
  if (fault == RowFault::cut && !files.options().counts_tokens) return "not looked for";
  if (fault == RowFault::near && files.options().near > 1) return "not looked for";
  if (fault == RowFault::conflict && !files.has_labels()) return "there are no labels";
  return "";
}

}  // namespace

std::string rows_text(std::uint64_t rows) {
  return grouped(static_cast<std::int64_t>(rows));
}

QualityReport quality_report(const CheckedFiles& files) {
  QualityReport report;
  std::vector<bool> faulty(files.rows().size());
  for (const RowFinding& finding : files.findings()) {
    const auto fault = static_cast<std::size_t>(finding.fault);
    ++report.faulty[fault];
    faulty[finding.row] = true;
    if (report.first[fault].size() < kExamples) report.first[fault].push_back(finding);
  }
  std::vector<double> lengths;
  for (std::size_t row = 0; row < files.rows().size(); ++row) {
    const CheckedRow& own = files.rows()[row];
    ++report.rows[static_cast<std::size_t>(own.split)];
    if (!faulty[row])
      lengths.push_back(static_cast<double>(own.text[0].size() + own.text[1].size()));
  }
  report.sound = lengths.size();
  std::ranges::sort(lengths);
  for (std::size_t i = 0; i <= kTenths && !lengths.empty(); ++i)
    report.lengths.push_back(lengths[(lengths.size() - 1) * i / kTenths]);
  if (files.has_labels()) count_labels(files, report);
  return report;
}

std::string finding_text(const CheckedFiles& files, const RowFinding& finding) {
  if (finding.fault == RowFault::broken) return files.rows()[finding.row].broken;
  if (finding.fault == RowFault::cut)
    return fmt::format("{} tokens, of which a sample has {}", files.rows()[finding.row].tokens,
                       files.context());
  if (finding.other == RowFinding::kNone)
    return std::string(kRowFaultMeanings[static_cast<std::size_t>(finding.fault)]);
  const std::string other = files.place_of(finding.other);
  switch (finding.fault) {
    case RowFault::conflict:
      return fmt::format("'{}' here, '{}' at {}", files.rows()[finding.row].label,
                         files.rows()[finding.other].label, other);
    case RowFault::overlap:
      return fmt::format("held out at {}", other);
    case RowFault::near:
      return fmt::format("nearly the text of {} ({:.2f})", other, finding.similarity);
    default:
      return fmt::format("the text of {}", other);
  }
}

std::string row_text(const CheckedFiles& files, std::size_t row, std::size_t most) {
  const CheckedRow& own = files.rows()[row];
  std::string text(own.text[0]);
  if (own.text[1].data() != nullptr) text += fmt::format(" | {}", own.text[1]);
  if (text.empty()) text = files.raw(row);
  while (text.ends_with('\n') || text.ends_with('\r')) text.pop_back();
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xc0) == 0x80) --most;
  return text.substr(0, most) + "...";
}

std::string report_text(const CheckedFiles& files, const QualityReport& report) {
  constexpr std::size_t kShown = 3, kWidth = 60;
  std::string text;
  for (std::size_t s = 0; s < report.rows.size(); ++s)
    if (report.rows[s] > 0)
      text += fmt::format("{:<12}{}\n", s == 0 ? "training" : kSplitNames[s],
                          counted(static_cast<std::int64_t>(report.rows[s]), "row"));
  for (std::size_t f = 0; f < kRowFaults; ++f) {
    const std::string not_done = looked_for(files, static_cast<RowFault>(f));
    text += fmt::format(
        "{:<12}{:>9} {:>6}  {}\n", kRowFaultNames[f],
        not_done.empty() ? rows_text(report.faulty[f]) : "-",
        not_done.empty() ? fmt::format("{:.1f}%", 100 * share(report.faulty[f], all_rows(report)))
                         : "",
        not_done.empty() ? kRowFaultMeanings[f] : std::string_view(not_done));
    for (std::size_t i = 0; i < std::min(kShown, report.first[f].size()); ++i) {
      const RowFinding& finding = report.first[f][i];
      text += fmt::format("  {}: {}: {}\n", files.place_of(finding.row),
                          escape_bytes(finding_text(files, finding)),
                          escape_bytes(row_text(files, finding.row, kWidth)));
    }
  }
  return text + fmt::format("{:<12}{:>9} {:>5.1f}%  have none of these\n", "sound",
                            rows_text(report.sound), 100 * share(report.sound, all_rows(report)));
}

nlohmann::ordered_json report_json(const CheckedFiles& files, const QualityReport& report) {
  nlohmann::ordered_json json;
  for (std::size_t s = 0; s < report.rows.size(); ++s)
    json["rows"][std::string(kSplitNames[s])] = report.rows[s];
  json["sound"] = report.sound;
  for (std::size_t f = 0; f < kRowFaults; ++f) {
    nlohmann::ordered_json& one = json["faults"][std::string(kRowFaultNames[f])];
    if (!looked_for(files, static_cast<RowFault>(f)).empty()) continue;  // null
    one["rows"] = report.faulty[f];
    one["meaning"] = kRowFaultMeanings[f];
    one["first"] = nlohmann::ordered_json::array();
    for (const RowFinding& finding : report.first[f]) {
      nlohmann::ordered_json example{{"at", files.place_of(finding.row)},
                                     {"why", finding_text(files, finding)},
                                     {"text", row_text(files, finding.row, 200)}};
      if (finding.other != RowFinding::kNone) example["other"] = files.place_of(finding.other);
      if (finding.fault == RowFault::near) example["similarity"] = finding.similarity;
      one["first"].push_back(std::move(example));
    }
  }
  for (const auto& [label, of] : report.labels)
    for (std::size_t s = 0; s < of.size(); ++s)
      if (report.rows[s] > 0) json["labels"][label][std::string(kSplitNames[s])] = of[s];
  if (report.other_labels > 0) json["other_labels"] = report.other_labels;
  json["lengths"] = report.lengths;
  return json;
}

}  // namespace concertina
