// Notes that a reader of a study's results must see beside them: of which program and machine the
// trials are, and whether those that differ in their layout alone have the same bits, as they
// should. Invariants: pure; figures of different programs or processors stand in one table only if
// someone asked for that, and then it says so.
#pragma once

#include <string>
#include <vector>

#include "experiments/results/results.h"

namespace concertina {

/// Throws Error{bad_input} if trials differ in version, commit or processor (of facts), unless
/// `mixed`: then a line on each. Lines too on instruction set, libraries, device and precision that
/// differ without being an axis of the study.
std::vector<std::string> provenance_notes(const Trials& trials, const StudyResults& results,
                                          bool mixed);

/// One line on what is the same in all layouts of `trials` (that are done), of loss,
/// validation_loss, grad_norm and state_sha256; and a line for each value of the other axes at
/// which one of these differs, with the trials that have it otherwise than most. Nothing where no
/// two trials differ in layout keys (is_layout_key) alone.
std::vector<std::string> same_bits(const Trials& trials, const std::vector<std::string>& axes);

}  // namespace concertina
