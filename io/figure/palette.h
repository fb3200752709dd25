// The colours of all that is drawn: those of Okabe and Ito ("Color Universal Design", 2008).
#pragma once

#include <string>

namespace concertina {

struct Colour {
  int red = 0, green = 0, blue = 0;  // 0 to 255
  bool operator==(const Colour&) const = default;
};

inline constexpr Colour kInk{29, 33, 41}, kSoft{92, 100, 112}, kGridLine{224, 227, 232},
    kPaper{255, 255, 255}, kIdle{240, 241, 244}, kIdleLines{188, 193, 201};
inline constexpr Colour kBlue{0, 114, 178}, kOrange{230, 159, 0}, kPaleOrange{246, 210, 139},
    kGreen{0, 158, 115}, kVermillion{213, 94, 0}, kSky{86, 180, 233}, kPink{204, 121, 167},
    kDark{77, 84, 94}, kGrey{154, 163, 174};

/// "#0072b2".
std::string hex(Colour colour);
/// The nearest of a terminal's 256 colours, of those that have a level of red, green and blue.
int terminal_colour(Colour colour);
/// `from` with `share` of `to` in it.
Colour mixed(Colour from, Colour to, double share);
/// Nearly black or white: what can be read on `back` (relative luminance of WCAG 2).
Colour readable_on(Colour back);

/// The colour of lines over an area.
enum class Hatch { none, rising, falling, crossed, level };

/// CSS variables for a page (--back, --ink, --blue, ...), light and dark as the reader's setting
/// says, which drawings on the page follow too.
std::string page_colours();

}  // namespace concertina
