// Steps as a picture: a panel per schedule, a row per rank, one axis of time for all; and in
// letters, for a terminal. Invariants: all panels have the same scales, of time and of memory; the
// size of the picture is bounded, whatever the plans: many actions are drawn by column, in the
// colour of what took most of it, of many ranks some are drawn, and the picture says so. No line of
// letters is longer than asked for.
#pragma once

#include <string>
#include <vector>

#include "experiments/timeline/timeline_rows.h"
#include "io/figure/drawing.h"

namespace concertina {

/// The unit of the axes.
struct TimelineUnits {
  std::string time_label = "time";  // of the axis, with its unit
  std::string time_unit{};          // after a number: " ms"
  double time = 1;                  // seconds of the costs in one of it
  bool bytes = false;               // activations: bytes; else microbatches of a rank's share
  /// For the page on a run, which zooms: numbers appear as there is room for them; panels have
  /// their names alone, and no activations.
  bool in_page = false;
};

/// `width_in`: inches. Panels of different numbers of ranks are fine.
Drawing draw_timelines(const std::vector<TimelinePanel>& panels, const TimelineUnits& units,
                       double width_in);

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
