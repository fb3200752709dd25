// Steps in letters, for a terminal. Invariant: no line is longer than asked for.
#pragma once

#include <string>
#include <vector>

#include "experiments/timeline/timeline_rows.h"

namespace concertina {

struct GridLook {
  std::size_t width = 0;  // characters of a line; 0: as many as it takes
  bool colour = false;    // ANSI, 256 colours
};

/// One cell per duration of the shortest action: "F3---" is F of microbatch 3, dashes as long as it
/// lasts, '.' a cell of waiting; with several stages per rank "5F3", stage 5. Where that does not
/// fit, or durations are no multiples of the shortest, a letter per cell, for what takes most of
/// it; where that does not fit either, cells are longer. The last line says what a column is then.
std::string timeline_grid(const std::vector<TimelinePanel>& panels, const GridLook& look);

}  // namespace concertina
