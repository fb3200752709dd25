// The timeline of a report: what was predicted over what was measured, on one axis.
// Invariant: the size of the picture is bounded, whatever the plan: many actions are drawn by
// column, in the colour of what took most of it, and the picture says so.
#pragma once

#include <string>

#include "experiments/record/report_figures.h"

namespace concertina {

std::string gantt(const RunTrace& trace, const ReportFigures& figures);

}  // namespace concertina
