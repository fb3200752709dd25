// The order of 1F1B: some forwards ahead, then one forward and one backward by turns.
// Invariant: for any lead a stage's backwards never wait for a forward that stands after them.
#pragma once

#include "parallel/generate/schedule_registry.h"

namespace concertina {

/// By stage: stage s runs lead * (p - 1 - s) forwards ahead of what it needs; backwards are of kind
/// `backward` (B, or I where fill_weights() adds W).
Rows one_f_one_b(int stages, int microbatches, int lead, Kind backward);

}  // namespace concertina
