// A table without its faulty rows.
// Invariant: what is kept is kept byte by byte.
#pragma once

#include <string>
#include <vector>

#include "experiments/quality/checked_files.h"

namespace concertina {

struct CleanedTable {
  std::uint64_t kept = 0, dropped = 0;
  std::array<std::uint64_t, kRowFaults> because{};  // of the dropped ones, by their worst fault
  std::string table{}, dropped_rows{};  // the table; JSON lines: line, fault, why, text of the row
};

/// The rows to train on without those that have one of `faults`. Input error: nothing is left.
CleanedTable clean_table(const CheckedFiles& files, const std::vector<RowFault>& faults);

}  // namespace concertina
