#include "io/figure/palette.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace concertina {
namespace {

/// A colour of pages, and what it is where readers like it dark.
struct PageColour {
  const char* name;
  Colour light, dark;
};
constexpr PageColour kPageColours[]{{"back", kPaper, {20, 23, 28}},
                                    {"card", {246, 247, 249}, {29, 33, 40}},
                                    {"ink", kInk, {232, 234, 237}},
                                    {"soft", kSoft, {163, 171, 182}},
                                    {"line", kGridLine, {54, 60, 70}},
                                    {"idle", kIdle, {42, 47, 56}},
                                    {"idle-lines", kIdleLines, {78, 85, 97}},
                                    {"blue", kBlue, {61, 155, 217}},
                                    {"dark", kDark, {195, 201, 209}},
                                    {"grey", kGrey, {125, 135, 147}},
                                    {"green", kGreen, kGreen},
                                    {"vermillion", kVermillion, kVermillion}};

/// The value of one linear channel, 0 to 1 (WCAG 2.1, relative luminance).
double linear(int channel) {
  const double c = channel / 255.0;
  return c <= 0.03928 ? c / 12.92 : std::pow((c + 0.055) / 1.055, 2.4);
}

}  // namespace

std::string hex(Colour colour) {
  return fmt::format("#{:02x}{:02x}{:02x}", colour.red, colour.green, colour.blue);
}

int terminal_colour(Colour colour) {
  const auto level = [](int channel) {  // 0, 95, 135, 175, 215, 255
    return channel < 48 ? 0 : std::clamp((channel - 35) / 40, 1, 5);
  };
  return 16 + 36 * level(colour.red) + 6 * level(colour.green) + level(colour.blue);
}

Colour mixed(Colour from, Colour to, double share) {
  const auto mix = [share](int a, int b) {
    return static_cast<int>(std::lround(a + (b - a) * std::clamp(share, 0.0, 1.0)));
  };
  return {mix(from.red, to.red), mix(from.green, to.green), mix(from.blue, to.blue)};
}

Colour readable_on(Colour back) {
  const double light =
      0.2126 * linear(back.red) + 0.7152 * linear(back.green) + 0.0722 * linear(back.blue);
  // The contrast with white is 1.05 / (light + 0.05), that with black (light + 0.05) / 0.05.
  return light > 0.179 ? Colour{20, 20, 20} : Colour{255, 255, 255};
}

std::string page_colours() {
  std::string light, dark, rules;
  for (const PageColour& one : kPageColours) {
    light += fmt::format(" --{}: {};", one.name, hex(one.light));
    dark += fmt::format(" --{}: {};", one.name, hex(one.dark));
    // White words stand on a colour.
    rules += fmt::format(
        "svg {2}[fill=\"{1}\"] {{ fill: var(--{0}); }} svg [stroke=\"{1}\"] {{ stroke: var(--{0}); "
        "}}\n",
        one.name, hex(one.light), one.light == kPaper ? ":not(text)" : "");
  }
  return fmt::format(
      ":root {{{} color-scheme: light dark; }}\n@media screen and (prefers-color-scheme: dark) {{\n"
      ":root {{{} }} }}\n{}",
      light, dark, rules);
}

}  // namespace concertina
