// What tests ask of a drawing: that its text is well-formed, that words do not lie on each other.
#pragma once

#include <fmt/format.h>

#include <array>
#include <boost/property_tree/xml_parser.hpp>
#include <cmath>
#include <numbers>
#include <sstream>

#include "core/text/utf8.h"
#include "io/figure/drawing.h"

namespace concertina {

/// What is wrong with it as XML; empty if nothing is.
inline std::string xml_fault(const std::string& text) {
  for (std::size_t i = 0; i < text.size();) {
    const std::size_t begin = i;
    const auto code = next_code(text, i);
    if (!code || (*code < ' ' && *code != '\n' && *code != '\t'))
      return fmt::format("no character at byte {}", begin);
  }
  try {
    std::istringstream stream(text);
    boost::property_tree::ptree tree;
    boost::property_tree::read_xml(stream, tree);
  } catch (const boost::property_tree::xml_parser_error& error) {
    return error.what();
  }
  return {};
}

/// The corners of a text that no font of text_width() leaves.
inline std::array<Spot, 4> corners_of(const TextShape& text) {
  const double width = text_width(text.text, text.size, text.bold);
  const double left = text.anchor == Anchor::start    ? 0
                      : text.anchor == Anchor::middle ? -width / 2
                                                      : -width;
  const double angle = text.turn * std::numbers::pi / 180, c = std::cos(angle), s = std::sin(angle);
  std::array<Spot, 4> corners;
  // Capitals and digits are 0.72 of the size high.
  const std::array<Spot, 4> flat{
      {{left, 0}, {left + width, 0}, {left + width, -0.72 * text.size}, {left, -0.72 * text.size}}};
  for (std::size_t i = 0; i < 4; ++i)
    corners[i] = {text.at.x + c * flat[i].x - s * flat[i].y,
                  text.at.y + s * flat[i].x + c * flat[i].y};
  return corners;
}

/// Whether a line of this direction between the two exists.
inline bool apart_along(const std::array<Spot, 4>& a, const std::array<Spot, 4>& b, Spot way) {
  const auto range = [&](const std::array<Spot, 4>& corners) {
    double low = 1e300, high = -1e300;
    for (const Spot& spot : corners) {
      const double at = spot.x * way.x + spot.y * way.y;
      low = std::min(low, at), high = std::max(high, at);
    }
    return std::pair{low, high};
  };
  const auto [a_low, a_high] = range(a);
  const auto [b_low, b_high] = range(b);
  return a_high <= b_low + 0.05 || b_high <= a_low + 0.05;
}

inline bool overlap(const std::array<Spot, 4>& a, const std::array<Spot, 4>& b) {
  for (const auto* corners : {&a, &b})
    for (std::size_t i = 0; i < 2; ++i) {
      const Spot from = (*corners)[i], to = (*corners)[i + 1];
      const double length = std::hypot(to.x - from.x, to.y - from.y);
      if (apart_along(a, b, {(to.x - from.x) / length, (to.y - from.y) / length})) return false;
    }
  return true;
}

/// Two texts that overlap, or one that leaves the sheet; empty if there are none.
inline std::string readable_fault(const Drawing& drawing) {
  std::vector<const TextShape*> texts;
  for (const Shape& shape : drawing.shapes)
    if (const auto* text = std::get_if<TextShape>(&shape); text != nullptr && !text->text.empty())
      texts.push_back(text);
  for (std::size_t i = 0; i < texts.size(); ++i) {
    const auto corners = corners_of(*texts[i]);
    for (const Spot& spot : corners)
      if (!(spot.x > -0.5 && spot.x < drawing.width + 0.5 && spot.y > -0.5 &&
            spot.y < drawing.height + 0.5))
        return fmt::format("'{}' leaves the sheet: {} {} of {} x {}", texts[i]->text, spot.x,
                           spot.y, drawing.width, drawing.height);
    for (std::size_t k = 0; k < i; ++k)
      if (overlap(corners, corners_of(*texts[k])))
        return fmt::format("'{}' at {} {} lies on '{}' at {} {}", texts[i]->text, texts[i]->at.x,
                           texts[i]->at.y, texts[k]->text, texts[k]->at.x, texts[k]->at.y);
  }
  return {};
}

inline bool has_text(const Drawing& drawing, const std::string& part) {
  for (const Shape& shape : drawing.shapes)
    if (const auto* text = std::get_if<TextShape>(&shape))
      if (text->text.find(part) != std::string::npos) return true;
  return false;
}

}  // namespace concertina
