// Whether figures of trials are of one measure: of the same data, in the same unit.
// Invariant: pure. Figures of which that is not known are not compared, so no best is marked and no
// difference shown where it would be one of unlike things.
#pragma once

#include <string>
#include <vector>

#include "experiments/study/results.h"

namespace concertina {

/// The fact of a run that has no config, such as one of another program.
inline constexpr const char* kNoConfig = "config";
/// The loss of held-out text that can be compared between tokenizers.
inline constexpr const char* kBitsPerByte = "validation_bits_per_byte";

/// Why the figures in `column` cannot be compared between those of `trials` that have one; empty:
/// they can.
std::string why_unlike(const Trials& trials, const std::string& column);

}  // namespace concertina
