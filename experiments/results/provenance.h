// Which program and which machine the trials of a study are of.
// Invariant: figures of different programs or processors stand in one table only if someone asked
// for that, and then it says so.
#pragma once

#include <string>
#include <vector>

#include "experiments/results/study_columns.h"

namespace concertina {

/// Throws Error{bad_input} if trials differ in version, commit or processor (of facts), unless
/// `mixed`: then a line on each. Lines too on instruction set, libraries, device and precision that
/// differ without being an axis of the study.
std::vector<std::string> provenance_notes(const Trials& trials, const StudyResults& results,
                                          bool mixed);

}  // namespace concertina
