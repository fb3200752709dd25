// The page of `report`: one file of HTML with its pictures, style and script in it; and its
// sections, of which a page on a study has some.
// Invariants: as of io/figure/page.h; under 5 MB for any run.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/record/report_figures.h"
#include "experiments/record/run_course.h"
#include "experiments/record/training_clock.h"
#include "io/figure/chart.h"

namespace concertina {

/// Another run, whose loss is drawn over that of the page.
struct BesideRun {
  std::string name;
  RunLog log;
};

/// `beside`: null where there is none.
std::string report_page(const RunFiles& run, const ReportFigures& figures,
                        const BesideRun* beside = nullptr);

/// The prediction over the measurement, on one axis.
std::string timeline_section(const RunTrace& trace, const ReportFigures& figures);
std::string bubble_section(const ReportFigures& figures);
std::string memory_section(const RunTrace& trace, const ReportFigures& figures);
/// Curves over all steps, with a mark on the loss for each change; nothing of a run of less than
/// two.
std::string training_section(const RunFiles& run, const RunCourse& course);
/// What held-out samples of each label were taken for; nothing of a run that tells no classes.
std::string classes_section(const RunFiles& run);
/// The changes between steps, and how fast the steps were in between; nothing of a run without
/// changes and other decisions.
std::string changes_section(const RunFiles& run, const RunCourse& course);
/// Held-out losses by seconds of training, of the run and another; without one a hint, where the
/// run froze layers.
std::string beside_section(const RunFiles& run, const RunCourse& course, const BesideRun* beside);
/// Who, when, where and what: as far as the run directory knows.
std::string about_section(const RunFiles& run);

/// One for each change, as far as there is room.
std::vector<LineMark> change_marks(const RunCourse& course);

inline constexpr std::size_t kMaxTableRows = 256, kMaxBarRows = 64;

/// A bar from left to right: idle time by cause, after computation if that is drawn too.
struct CauseBar {
  std::string name;
  double busy = 0, idle = 0;     // idle: where no cause is known
  IdleCauses causes;             // in the unit of the chart
  std::optional<double> mark{};  // predicted
  std::string text{};            // at its end
};
Drawing draw_causes(const std::vector<CauseBar>& bars, const ChartAxis& axis);

}  // namespace concertina
