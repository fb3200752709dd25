// One schedule of a picture of timelines: title, a row per rank, critical path, memory; and how
// kinds of work look. Invariants: it draws below the height that it is given, and returns the
// height where it ends; in grey, W and the optimizer are told from F, B and I by hatches, and these
// by lightness.
#pragma once

#include <string>
#include <vector>

#include "experiments/timeline/timeline_drawing.h"
#include "experiments/timeline/timeline_rows.h"
#include "io/figure/drawing.h"

namespace concertina {

inline constexpr double kRankSize = 6.5, kCaptionSize = 6.2;  // of letters, in points
inline constexpr double kColumnWidth = 0.5;                   // points, where boxes are too many
inline constexpr double kIdleGap = 3.4;                       // points between the lines

Colour colour_of(WorkKind work);
/// Paler for the later of its rank's `chunks` stages. Pale F and B look like W and I without their
/// hatches: where there is no room for these, all stages have one colour.
Colour colour_of(WorkKind work, int chunk, int chunks);
/// The lines over its box, if it has any.
PathShape hatch_of(WorkKind work, const RectShape& box);

/// The scale and choices that all panels of a picture share.
struct PanelScale {
  double left = 0, right = 0;  // points: 0 and `longest`
  double longest = 0;          // seconds
  double row = 13;             // points from one rank to the next
  std::size_t rows = 0;        // ranks shown, at most
  double most_saved = 0;       // of any panel
  double saved_unit = 1;       // of its numbers
  bool by_column = false;
  TimelineUnits units{};

  double x(double seconds) const {
    return left + (longest > 0 ? seconds / longest : 0) * (right - left);
  }
};

/// The activations of the rank that saves most.
struct SavedCurve {
  std::size_t rank = 0;
  double peak = 0;
  std::vector<SavedLevel> levels;
  std::string caption;
};

struct PanelText {
  std::string title, figures;
};

double draw_timeline_panel(const TimelinePanel& panel, const SavedCurve& saved,
                           const PanelText& text, const PanelScale& scale, double top,
                           Drawing& sheet);

}  // namespace concertina
