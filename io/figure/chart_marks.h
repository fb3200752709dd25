// What a chart shows inside its axes, by kind.
// Invariant: none if there is nothing to show; no series of no value has a line in the legend.
#pragma once

#include <optional>

#include "io/figure/chart.h"

namespace concertina {

std::optional<Drawing> draw_marks(const Chart& chart, const Lines& lines);
std::optional<Drawing> draw_marks(const Chart& chart, const Bars& bars);
std::optional<Drawing> draw_marks(const Chart& chart, const Stacks& stacks);
std::optional<Drawing> draw_marks(const Chart& chart, const HeatMap& map);
std::optional<Drawing> draw_marks(const Chart& chart, const Scatter& scatter);

}  // namespace concertina
