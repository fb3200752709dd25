// Whether trials that differ in their layout alone have the same bits, as they should.
// Invariant: pure.
#pragma once

#include <string>
#include <vector>

#include "experiments/results/study_columns.h"

namespace concertina {

/// One line on what is the same in all layouts of `trials` (that are done), of loss,
/// validation_loss, grad_norm and state_sha256; and a line for each value of the other axes at
/// which one of these differs, with the trials that have it otherwise than most. Nothing where no
/// two trials differ in layout keys (is_layout_key) alone.
std::vector<std::string> same_bits(const Trials& trials, const std::vector<std::string>& axes);

}  // namespace concertina
