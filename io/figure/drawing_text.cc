// The text of a drawing: SVG, TikZ, HTML.
#include <fmt/format.h>

#include <cmath>
#include <iterator>
#include <map>

#include "core/text/utf8.h"
#include "io/figure/drawing.h"

namespace concertina {
namespace {

// Fonts that most machines and papers have; all have the widths of Helvetica but the last.
constexpr const char* kFonts =
    "Helvetica, Arial, 'Liberation Sans', 'Nimbus Sans', 'DejaVu Sans', sans-serif";

/// To a hundredth of a point, without zeros at the end.
std::string length(double value) {
  std::string text = fmt::format("{:.2f}", value);
  while (text.back() == '0') text.pop_back();
  if (text.back() == '.') text.pop_back();
  return text == "-0" ? "0" : text;
}

bool all_finite(const Spot& spot) {
  return std::isfinite(spot.x) && std::isfinite(spot.y);
}
bool can_draw(const RectShape& rect) {
  return all_finite({rect.x, rect.y}) && rect.width > 0 && rect.height > 0 &&
         all_finite({rect.width, rect.height});
}
bool can_draw(const PathShape& path) {
  for (const auto& piece : path.pieces)
    for (const Spot& spot : piece)
      if (!all_finite(spot)) return false;
  return !path.pieces.empty();
}
bool can_draw(const TextShape& text) {
  return all_finite(text.at) && !text.text.empty();
}

class SvgWriter {
 public:
  explicit SvgWriter(const Drawing& drawing) : drawing_(drawing) {}

  std::string text(bool in_page) {
    const std::string width = length(drawing_.width), height = length(drawing_.height);
    add("<svg viewBox=\"0 0 {} {}\" font-family=\"{}\"", width, height, kFonts);
    if (!in_page)
      add(" role=\"img\" xmlns=\"http://www.w3.org/2000/svg\" width=\"{}pt\" height=\"{}pt\"",
          width, height);
    if (const auto& at = drawing_.axes; at && in_page)
      add(" data-axes=\"{} {} {} {} {} {} {} {}\" data-x=\"{}\"", length(at->left),
          length(at->right), length(at->top), length(at->bottom), at->x_low, at->x_high, at->y_low,
          at->y_high, xml_text(at->x_name));
    add(">\n");
    if (!drawing_.title.empty() && !in_page) add("<title>{}</title>\n", xml_text(drawing_.title));
    add("<rect width=\"100%\" height=\"100%\" fill=\"{}\"/>\n", hex(kPaper));
    for (const Shape& shape : drawing_.shapes)
      std::visit(
          [this](const auto& one) {
            if (can_draw(one)) write(one);
          },
          shape);
    return text_ + "</svg>\n";
  }

 private:
  template <class... T>
  void add(fmt::format_string<T...> format, T&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<T>(values)...);
  }

  void paint(const Paint& paint) {
    add(" fill=\"{}\"", paint.fill ? hex(*paint.fill) : "none");
    if (paint.line) {
      add(" stroke=\"{}\" stroke-width=\"{}\"", hex(*paint.line), length(paint.width));
      for (std::size_t i = 0; i < paint.dash.size(); ++i)
        add("{}{}", i == 0 ? " stroke-dasharray=\"" : " ", length(paint.dash[i]));
      if (!paint.dash.empty()) add("\"");
      add(" stroke-linejoin=\"round\"");
    }
    if (paint.opacity < 1) add(" opacity=\"{}\"", length(paint.opacity));
  }

  void write(const RectShape& rect) {
    add("<rect x=\"{}\" y=\"{}\" width=\"{}\" height=\"{}\"", length(rect.x), length(rect.y),
        length(rect.width), length(rect.height));
    paint(rect.paint);
    end("rect", rect.title);
  }

  void end(const char* shape, const std::string& title) {
    if (title.empty())
      add("/>\n");
    else
      add("><title>{}</title></{}>\n", xml_text(title), shape);
  }

  void write(const PathShape& path) {
    add("<path d=\"");
    for (const auto& piece : path.pieces) {
      for (std::size_t i = 0; i < piece.size(); ++i)
        // Lines along an axis are shorter so.
        if (i > 0 && piece[i].y == piece[i - 1].y)
          add("H{}", length(piece[i].x));
        else if (i > 0 && piece[i].x == piece[i - 1].x)
          add("V{}", length(piece[i].y));
        else
          add("{}{} {}", i == 0 ? "M" : "L", length(piece[i].x), length(piece[i].y));
      if (path.closed) add("z");
    }
    add("\"");
    paint(path.paint);
    end("path", path.title);
  }

  void write(const TextShape& text) {
    const std::string x = length(text.at.x), y = length(text.at.y);
    add("<text x=\"{}\" y=\"{}\" font-size=\"{}\" fill=\"{}\"", x, y, length(text.size),
        hex(text.colour));
    if (text.anchor != Anchor::start)
      add(" text-anchor=\"{}\"", text.anchor == Anchor::middle ? "middle" : "end");
    if (text.bold) add(" font-weight=\"bold\"");
    if (text.zoom > 1) add(" data-zoom=\"{}\" display=\"none\"", text.zoom);
    if (text.turn != 0) add(" transform=\"rotate({} {} {})\"", length(text.turn), x, y);
    add(">{}</text>\n", xml_text(text.text));
  }

  const Drawing& drawing_;
  std::string text_;
};

/// As LaTeX prints it, in text.
std::string tex_text(std::string_view text) {
  static const std::map<std::uint32_t, const char*> kNames{{'\\', "\\textbackslash{}"},
                                                           {'{', "\\{"},
                                                           {'}', "\\}"},
                                                           {'$', "\\$"},
                                                           {'&', "\\&"},
                                                           {'#', "\\#"},
                                                           {'_', "\\_"},
                                                           {'%', "\\%"},
                                                           {'~', "\\textasciitilde{}"},
                                                           {'^', "\\textasciicircum{}"},
                                                           {'<', "\\textless{}"},
                                                           {'>', "\\textgreater{}"},
                                                           {'|', "\\textbar{}"},
                                                           {0xB5, "$\\mu$"},
                                                           {0xD7, "$\\times$"}};
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t begin = i;
    const std::uint32_t code = next_code(text, i).value_or('?');
    const auto name = kNames.find(code);
    if (name != kNames.end())
      result += name->second;
    else if (code < ' ' || code == 0x7F || code >= 0xFFFE)
      result += '?';
    else
      result += code == '?' ? "?" : std::string(text.substr(begin, i - begin));
  }
  return result;
}

class TikzWriter {
 public:
  explicit TikzWriter(const Drawing& drawing) : drawing_(drawing) {}

  std::string text() {
    std::string body;
    std::swap(body, text_);
    for (const Shape& shape : drawing_.shapes)
      std::visit(
          [this](const auto& one) {
            if (can_draw(one)) write(one);
          },
          shape);
    std::swap(body, text_);
    add("% In a document with \\usepackage{{tikz}}: \\input this file. By itself:\n"
        "%   \\documentclass{{standalone}}\\usepackage{{tikz}}\\begin{{document}}"
        "\\input{{FILE}}\\end{{document}}\n");
    add("\\begin{{tikzpicture}}[x=1bp,y=-1bp]\n");
    for (const auto& [value, name] : colours_)
      add("\\definecolor{{{}}}{{RGB}}{{{},{},{}}}\n", name, value >> 16, value >> 8 & 255,
          value & 255);
    add("\\useasboundingbox (0,0) rectangle ({},{});\n", length(drawing_.width),
        length(drawing_.height));
    return text_ + body + "\\end{tikzpicture}\n";
  }

 private:
  template <class... T>
  void add(fmt::format_string<T...> format, T&&... values) {
    fmt::format_to(std::back_inserter(text_), format, std::forward<T>(values)...);
  }

  std::string name_of(Colour colour) {
    const int value = colour.red << 16 | colour.green << 8 | colour.blue;
    const auto [entry, added] = colours_.try_emplace(value);
    if (added) entry->second = fmt::format("concertina{:06x}", value);
    return entry->second;
  }

  void paint(const Paint& paint) {
    add("\\path[");
    if (paint.fill) add("fill={},", name_of(*paint.fill));
    if (paint.line) {
      add("draw={},line width={}bp,line join=round,", name_of(*paint.line), length(paint.width));
      for (std::size_t i = 0; i < paint.dash.size(); ++i)
        add("{}{} {}bp", i == 0 ? "dash pattern=" : " ", i % 2 == 0 ? "on" : "off",
            length(paint.dash[i]));
      if (!paint.dash.empty()) add(",");
    }
    if (paint.opacity < 1) add("opacity={},", length(paint.opacity));
    add("]");
  }

  void write(const RectShape& rect) {
    paint(rect.paint);
    add(" ({},{}) rectangle ({},{});\n", length(rect.x), length(rect.y),
        length(rect.x + rect.width), length(rect.y + rect.height));
  }

  void write(const PathShape& path) {
    paint(path.paint);
    for (const auto& piece : path.pieces) {
      for (std::size_t i = 0; i < piece.size(); ++i)
        add("{}({},{})", i == 0 ? " " : "--", length(piece[i].x), length(piece[i].y));
      if (path.closed) add("--cycle");
    }
    add(";\n");
  }

  void write(const TextShape& text) {
    if (text.zoom > 1) return;
    const char* anchor = text.anchor == Anchor::start    ? "base west"
                         : text.anchor == Anchor::middle ? "base"
                                                         : "base east";
    add("\\node[anchor={},inner sep=0pt,text={}", anchor, name_of(text.colour));
    if (text.turn != 0) add(",rotate={}", length(-text.turn));
    add(",font=\\sffamily{}\\fontsize{{{}bp}}{{{}bp}}\\selectfont] at ({},{}) {{{}}};\n",
        text.bold ? "\\bfseries" : "", length(text.size), length(1.2 * text.size),
        length(text.at.x), length(text.at.y), tex_text(text.text));
  }

  const Drawing& drawing_;
  std::map<int, std::string> colours_;
  std::string text_;
};

}  // namespace

std::string xml_text(std::string_view text) {
  std::string result;
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t begin = i;
    const std::uint32_t code = next_code(text, i).value_or(0);
    switch (code) {
      case '&':
        result += "&amp;";
        break;
      case '<':
        result += "&lt;";
        break;
      case '>':
        result += "&gt;";
        break;
      case '"':
        result += "&quot;";
        break;
      case '\'':
        result += "&#39;";
        break;
      default: {
        const bool allowed = code >= ' ' || code == '\n' || code == '\t';
        result += allowed && code != 0xFFFE && code != 0xFFFF
                      ? std::string(text.substr(begin, i - begin))
                      : "?";
      }
    }
  }
  return result;
}

std::string svg(const Drawing& drawing) {
  return SvgWriter(drawing).text(false);
}

std::string svg_in_page(const Drawing& drawing) {
  return SvgWriter(drawing).text(true);
}

std::string tikz(const Drawing& drawing) {
  return TikzWriter(drawing).text();
}

std::string html_page(const Drawing& drawing, const std::string& note) {
  return fmt::format(
      "<!DOCTYPE html>\n<html xmlns=\"http://www.w3.org/1999/xhtml\" lang=\"en\">\n<head>\n"
      "<meta charset=\"utf-8\"/>\n<title>{}</title>\n<style>\n{}"
      "body {{ margin: 24px; font: 14px/1.5 system-ui, sans-serif; color: var(--ink); "
      "background: var(--back) }}\n"
      "svg {{ display: block; width: 100%; height: auto; max-width: 1400px }}\n"
      "svg rect:hover {{ stroke: var(--ink); stroke-width: 1 }}\n"
      "p {{ color: var(--soft); overflow-wrap: anywhere "
      "}}\n</style>\n</head>\n<body>\n{}<p>{}</p>\n"
      "</body>\n</html>\n",
      xml_text(drawing.title), page_colours(), svg_in_page(drawing), xml_text(note));
}

}  // namespace concertina
