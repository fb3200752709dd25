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

#include "io/figure/palette.h"

namespace concertina {

/// The width of a page in inches.
inline constexpr double kPageInches = 6.75;

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
  std::string title{};  // as of a rectangle; of a curve whose values a page reads off, its name
};
enum class Anchor { start, middle, end };
struct TextShape {
  Spot at{};  // on the base line
  std::string text;
  double size = 7;  // points
  Anchor anchor = Anchor::start;
  bool bold = false;
  Colour colour = kInk;
  double turn = 0;  // degrees, clockwise
  int zoom = 1;     // shown from this zoom of a web page on: there is no room before
};
using Shape = std::variant<RectShape, PathShape, TextShape>;

/// Where the linear axes of a drawing lie, and what they reach: a web page reads values off curves
/// by it, and zooms what is right of `left` and below `top`.
struct AxesArea {
  double left = 0, right = 0, top = 0, bottom = 0;      // points
  double x_low = 0, x_high = 1, y_low = 0, y_high = 1;  // values
  std::string x_name{};
};

struct Drawing {
  double width = 0, height = 0;  // points
  std::string title{};           // for readers who cannot see it
  std::vector<Shape> shapes{};   // in the order in which they are drawn
  std::optional<AxesArea> axes{};

  void add(Shape shape) { shapes.push_back(std::move(shape)); }
  void words(Spot at, std::string text, double size, Anchor anchor = Anchor::start,
             Colour colour = kInk, double turn = 0) {
    add(TextShape{at, std::move(text), size, anchor, false, colour, turn});
  }
  void bold_words(Spot at, std::string text, double size) {
    add(TextShape{at, std::move(text), size, Anchor::start, true});
  }
  void line(Spot from, Spot to, Colour colour, double thickness) {
    add(PathShape{{{from, to}}, false, {.line = colour, .width = thickness}});
  }
};

/// Points that `text` takes in any usual sans serif font: Helvetica's widths, and as much on top as
/// the widest of the others (DejaVu Sans) needs.
double text_width(std::string_view text, double size, bool bold = false);
/// `text` if it fits into `width`, else its beginning and "...".
std::string shortened(const std::string& text, double size, double width);
/// `text` broken at blanks into lines that fit; a word that does not is shortened.
std::vector<std::string> wrapped(const std::string& text, double size, double width,
                                 bool bold = false);

/// Lines over a rectangle, `gap` points apart. Those of neighbours meet.
PathShape hatch_lines(const RectShape& area, Hatch hatch, double gap, const Paint& paint);

std::string svg(const Drawing& drawing);
/// The same as a part of an HTML page: as wide as its place there, in the page's colours.
std::string svg_in_page(const Drawing& drawing);
/// A `tikzpicture` for \input; plain TikZ, no library of it. Its head says what a document needs.
std::string tikz(const Drawing& drawing);
/// A page with the drawing in it, and `note` under it.
std::string html_page(const Drawing& drawing, const std::string& note);

/// `text` as XML may have it: what means something there is escaped; what is no UTF-8, or no
/// character of XML, becomes '?'.
std::string xml_text(std::string_view text);

}  // namespace concertina
