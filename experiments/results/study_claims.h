// What a study claims of its groups: that they are as good as their baseline in one figure, and
// what they gain in another. Invariant: pure; both are of the same pairs as the table's
// differences.
#pragma once

#include <string>
#include <vector>

#include "experiments/results/group_comparison.h"
#include "experiments/results/study_table.h"

namespace concertina {

/// `table.rows` are in the order of `source.groups`. The options' front names two metrics. Throws
/// Error{bad_input} for another number of them, or one of which no way is better.
StudyFront make_front(const TableSource& source, StudyTable& table);

/// Head and lines of a table; for all groups that were tested.
std::vector<std::vector<std::string>> equivalence_rows(const StudyTable& table);
std::vector<std::vector<std::string>> front_rows(const StudyFront& front);
/// How to read them, and where loss begins.
std::vector<std::string> claim_lines(const StudyTable& table);

/// The front of the table with its intervals; lines at no change, and at the margin of a claim.
Chart front_chart(const StudyTable& table);

}  // namespace concertina
