// The page of `report`: one file of HTML with its pictures, style and script in it.
// Invariants: refers to nothing outside; says everything without its script, which zooms, reads
// values off curves and saves figures as SVG; well-formed XML; under 5 MB for any run.
#pragma once

#include <string>

#include "experiments/record/report_figures.h"

namespace concertina {

std::string report_page(const RunFiles& run, const ReportFigures& figures);

}  // namespace concertina
