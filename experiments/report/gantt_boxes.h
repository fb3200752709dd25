// What a timeline shows of a rank: boxes of its actions and waits.
// Invariant: values alone, in seconds of the step; how they are drawn is report_gantt.cc's
// business.
#pragma once

#include <array>
#include <string>
#include <vector>

#include "experiments/record/report_figures.h"

namespace concertina {

struct GanttBox {
  /// The styles, in the order in which they are drawn.
  enum Style {
    kForward,
    kInput,
    kWeight,
    kBackward,
    kOptimizer,  // work
    kPeers,
    kTransfer,
    kReduction,
    kGather,  // waiting
    kStyles
  };
  Style style = kForward;
  double start = 0, end = 0;
  std::string text, title;
  int chunk = 0;  // which of its rank's stages
  int part = 0;   // of an overlapped pair: 1 above, 2 below
};

/// CSS classes of the styles.
inline constexpr std::array<const char*, GanttBox::kStyles> kGanttClasses{
    "f", "i", "w", "b", "o", "idle", "wt", "wr", "wo"};

/// The boxes of one rank's row at these times.
std::vector<GanttBox> action_boxes(const RunTrace& trace, std::size_t rank,
                                   const std::vector<Interval>& times, bool with_titles);

/// What `rank` waits for in the prediction, after its last gradient and in STEP.
void add_predicted_waits(const RunTrace& trace, const ReportFigures& figures, std::size_t rank,
                         std::vector<GanttBox>& boxes);

/// Measured waits, cut where the computation that they were for had ended.
void add_waits(const Layout& layout, const StepRecord& record, const std::vector<double>& computed,
               double origin, std::vector<GanttBox>& boxes);

}  // namespace concertina
