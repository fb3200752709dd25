// The legend of a picture of timelines.
#pragma once

#include <vector>

#include "experiments/timeline/timeline_rows.h"
#include "io/figure/drawing.h"

namespace concertina {

/// What the panels have (`by_column`: without hatches and shades of stages), in lines from `left`
/// to `right` below `top`; returns where they end.
double draw_timeline_legend(const std::vector<TimelinePanel>& panels, double left, double top,
                            double right, bool by_column, Drawing& sheet);

}  // namespace concertina
