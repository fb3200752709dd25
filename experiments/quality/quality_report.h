// What is wrong with rows, for a terminal, a program and a page.
#pragma once

#include <array>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiments/quality/checked_files.h"

namespace concertina {

struct QualityReport {
  std::array<std::uint64_t, 3> rows{};                    // of the splits
  std::array<std::uint64_t, kRowFaults> faulty{};         // rows with a fault of that kind
  std::array<std::vector<RowFinding>, kRowFaults> first;  // some of them, in order
  std::uint64_t sound = 0;                                // rows without any fault
  std::vector<std::pair<std::string, std::array<std::uint64_t, 3>>> labels;  // the most frequent
  std::uint64_t other_labels = 0;                                            // not listed
  std::vector<double> lengths;  // of the sound rows: characters of 0, 10, 20, ... 100% of them
};

QualityReport quality_report(const CheckedFiles& files);

/// A number of rows: "12,345".
std::string rows_text(std::uint64_t rows);
/// Why a finding is one: "nearly the text of a.tsv:3 (0.93)".
std::string finding_text(const CheckedFiles& files, const RowFinding& finding);
/// The text of a row, its two of a pair with " | " between them; cut after `most` bytes.
std::string row_text(const CheckedFiles& files, std::size_t row, std::size_t most);

std::string report_text(const CheckedFiles& files, const QualityReport& report);
nlohmann::ordered_json report_json(const CheckedFiles& files, const QualityReport& report);

}  // namespace concertina
