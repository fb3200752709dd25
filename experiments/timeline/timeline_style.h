// How kinds of work look.
// Invariant: the colours are those of the report page's timeline
// (experiments/report/report_style.h); in grey, W and the optimizer are told from F, B and I by
// hatches, and these by lightness.
#pragma once

#include "experiments/timeline/timeline_rows.h"
#include "io/figure/palette.h"

namespace concertina {

inline constexpr Colour kIdle{240, 241, 244}, kIdleLines{188, 193, 201};
inline constexpr double kIdleGap = 3.4;  // points between the lines

inline Colour colour_of(WorkKind work) {
  constexpr Colour kColours[kWorkKinds]{
      {0, 114, 178}, {230, 159, 0}, {246, 210, 139}, {86, 180, 233}, {204, 121, 167}};
  return kColours[static_cast<int>(work)];
}

/// Paler for the later of its rank's `chunks` stages. Pale F and B look like W and I without their
/// hatches: where there is no room for these, all stages have one colour.
inline Colour colour_of(WorkKind work, int chunk, int chunks) {
  // A paler F still is darker than B, in grey too.
  const double most = work == WorkKind::forward ? 0.27 : 0.45;
  return mixed(colour_of(work), kPaper, chunks > 1 ? most * chunk / (chunks - 1) : 0);
}

/// Its lines over a box; none for F and B.
inline PathShape hatch_of(WorkKind work, const RectShape& box) {
  const Hatch hatch = work == WorkKind::weight      ? Hatch::falling
                      : work == WorkKind::input     ? Hatch::rising
                      : work == WorkKind::optimizer ? Hatch::crossed
                                                    : Hatch::none;
  const Colour colour = work == WorkKind::input ? mixed(colour_of(WorkKind::backward), kInk, 0.1)
                                                : mixed(colour_of(work), kInk, 0.4);
  return hatch_lines(box, hatch, 3, {.line = colour, .width = 0.4});
}

}  // namespace concertina
