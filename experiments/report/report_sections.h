// Sections of the report page that have a file of their own, and what sections share.
// Invariant: as of experiments/report/report_page.h.
#pragma once

#include <string>
#include <vector>

#include "experiments/record/report_figures.h"
#include "experiments/record/run_course.h"

namespace concertina {

std::string bubble_section(const ReportFigures& figures);
std::string memory_section(const RunTrace& trace, const ReportFigures& figures);
/// Curves over all steps, with a mark on the loss for each change; nothing of a run of less than
/// two.
std::string training_section(const RunFiles& run, const RunCourse& course);
/// What changed between steps, and how fast the steps were in between; nothing of a run without
/// changes and other decisions.
std::string changes_section(const RunFiles& run, const RunCourse& course);
/// Who, when, where and what: as far as the run directory knows.
std::string about_section(const RunFiles& run);

/// One for each change that `plot`, over steps, has room for.
std::vector<html::Mark> change_marks(const RunCourse& course, const html::Plot& plot);

inline constexpr std::size_t kMaxTableRows = 256;

/// At most `count` of `ranks` ranks, at equal distances.
std::vector<std::size_t> some_ranks(std::size_t ranks, std::size_t count);

}  // namespace concertina
