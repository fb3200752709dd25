// Pages of figures, such as those of a run and of a study: frame, style, script, pieces of HTML as
// text. Invariants: a page refers to nothing outside; says everything without its script, which
// zooms, reads values off curves and saves figures as SVG; what these give is well-formed XML,
// whatever text goes in. Colours are the palette's; light and dark follow the reader's setting.
#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "io/figure/chart.h"

namespace concertina::html {

/// `text` with the characters that mean something in XML replaced; control characters become '?'.
std::string escape(std::string_view text);

/// `share`, "12.3%".
std::string share_text(double share);

/// A page; `style` is what its own parts need besides the style of all pages.
std::string page(std::string_view title, std::string_view body, std::string_view style = {});

/// A figure in large, and what it is.
std::string tile(std::string_view value, std::string_view text);

/// A table that scrolls by itself where it is wide; the first of the rows is its head. `style`: its
/// class, if it has one.
std::string table(const std::vector<std::vector<std::string>>& rows, std::string_view style = {});

/// `text` as it is, folded away under `summary`; empty if it is.
std::string folded(std::string_view summary, std::string_view text);

/// A drawing with a button that saves it as an SVG file of this name; `zooms`: and such that make
/// it longer, letters apart.
std::string figure(std::string_view name, const Drawing& drawing, bool zooms = false);

/// Widths of figures: beside another one, and alone, in inches of the drawing.
inline constexpr double kHalf = 4.5, kWhole = 9;

/// The exponential mean over about `span` points; of the reciprocals where `rates` says so, since a
/// rate over several steps is all they did over all that they took.
LineSeries smoothed(LineSeries series, double span, bool rates = false);

}  // namespace concertina::html
