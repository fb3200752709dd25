// A drawing as a value: boxes, lines, circles and words on a sheet of paper, and its text as SVG,
// TikZ or HTML.
// Invariants: the same value gives the same bytes; the text is well-formed whatever words and
// numbers are in it (a shape with a coordinate that is not finite is left out); words stay words,
// never outlines.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

namespace concertina {

struct Colour {
  int red = 0, green = 0, blue = 0;  // 0 to 255
  bool operator==(const Colour&) const = default;
};

/// `from` with `share` of `to` in it.
Colour mixed(Colour from, Colour to, double share);
/// Black or white: what can be read on `back` (relative luminance of WCAG 2).
Colour readable_on(Colour back);

/// A place in points (1/72 inch) from the upper left corner.
struct Spot {
  double x = 0, y = 0;
};

struct Paint {
  std::optional<Colour> fill{}, line{};
  double width = 0.5;          // of the line, in points
  std::vector<double> dash{};  // lengths in points: drawn, left out, ...
  double opacity = 1;
};

struct RectShape {
  double x = 0, y = 0, width = 0, height = 0;
  Paint paint{};
  std::string title{};  // what a reader of a web page sees who points at it
};
struct PathShape {
  std::vector<std::vector<Spot>> pieces;
  bool closed = false;
  Paint paint{};
};
struct CircleShape {
  Spot at{};
  double radius = 1;
  Paint paint{};
};
enum class Anchor { start, middle, end };
struct TextShape {
  Spot at{};  // on the base line
  std::string text;
  double size = 7;  // points
  Anchor anchor = Anchor::start;
  bool bold = false;
  Colour colour{};
  double turn = 0;  // degrees, clockwise
};
using Shape = std::variant<RectShape, PathShape, CircleShape, TextShape>;

struct Drawing {
  double width = 0, height = 0;  // points
  std::string title{};           // for readers who cannot see it
  std::vector<Shape> shapes{};   // in the order in which they are drawn
};

/// Points that `text` takes in any usual sans serif font: Helvetica's widths, and as much on top as
/// the widest of the others (DejaVu Sans) needs.
double text_width(std::string_view text, double size, bool bold = false);
/// `text` if it fits into `width`, else its beginning and "...".
std::string shortened(const std::string& text, double size, double width);
/// `text` broken at blanks into lines that fit; a word that does not is shortened.
std::vector<std::string> wrapped(const std::string& text, double size, double width,
                                 bool bold = false);

enum class Hatch { none, rising, falling, crossed, level };
/// Lines over a rectangle, `gap` points apart. Those of neighbours meet.
PathShape hatch_lines(const RectShape& area, Hatch hatch, double gap, const Paint& paint);

std::string svg(const Drawing& drawing);
/// A `tikzpicture` for \input; plain TikZ, no library of it. Its head says what a document needs.
std::string tikz(const Drawing& drawing);
/// A page with the drawing in it, and `note` under it.
std::string html_page(const Drawing& drawing, const std::string& note);

/// `text` as XML may have it: what means something there is escaped; what is no UTF-8, or no
/// character of XML, becomes '?'.
std::string xml_text(std::string_view text);

}  // namespace concertina
