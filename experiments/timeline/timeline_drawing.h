// Predicted steps as a picture: a panel per schedule, a row per rank, one axis of time for all.
// Invariants: all panels have the same scales, of time and of memory; the size of the picture is
// bounded, whatever the plans: many actions are drawn by column, in the colour of what took most of
// it, of many ranks some are drawn, and the picture says so.
#pragma once

#include <string>
#include <vector>

#include "experiments/timeline/timeline_rows.h"
#include "io/figure/drawing.h"

namespace concertina {

/// What the axes are in.
struct TimelineUnits {
  std::string time_label = "time";  // of the axis, with its unit
  std::string time_unit{};          // after a number: " ms"
  double time = 1;                  // seconds of the costs in one of it
  bool bytes = false;               // activations: bytes; else microbatches of a rank's share
};

/// `width_in`: inches. Panels of different numbers of ranks are fine.
Drawing draw_timelines(const std::vector<TimelinePanel>& panels, const TimelineUnits& units,
                       double width_in);

}  // namespace concertina
