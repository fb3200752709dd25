#include "io/figure/axis_ticks.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace concertina {
namespace {

constexpr int kMostTicks = 60;

/// The step of 1, 2 or 5 times a power of ten that is at least `least`.
double round_step(double least) {
  const double power = std::pow(10, std::floor(std::log10(least)));
  for (const double factor : {1.0, 2.0, 5.0})
    if (factor * power >= least * (1 - 1e-9)) return factor * power;
  return 10 * power;
}

/// As many decimals as the distance of two ticks needs; large ones with k, M, G.
std::string tick_text(double value, double step, double largest) {
  if (value == 0) return "0";
  if (largest >= 1e13 || largest < 1e-3) return short_number(value, 4);
  const double unit = largest >= 1e10 ? 1e9 : largest >= 1e7 ? 1e6 : largest >= 1e4 ? 1e3 : 1;
  const char* name = unit == 1e9 ? "G" : unit == 1e6 ? "M" : unit == 1e3 ? "k" : "";
  const int digits = std::clamp(static_cast<int>(std::ceil(-std::log10(step / unit) - 1e-9)), 0, 9);
  return fmt::format("{:.{}f}{}", value / unit, digits, name);
}

}  // namespace

std::string short_number(double value, int digits) {
  if (!std::isfinite(value)) return std::isnan(value) ? "NaN" : value > 0 ? "inf" : "-inf";
  std::string text = fmt::format("{:.{}g}", value, std::max(1, digits));
  if (text == "-0") return "0";
  // A number that {:g} writes as 1.23e+04 is easier to read in full.
  if (std::abs(value) < 1e7 && text.find('e') != std::string::npos && std::abs(value) >= 1)
    text = fmt::format("{:.0f}", std::stod(text));
  if (const auto e = text.find("e+"); e != std::string::npos) text.erase(e + 1, 1);
  if (const auto e = text.find('e'); e != std::string::npos)
    while (e + 2 < text.size() && text[e + 1] == '0') text.erase(e + 1, 1);
  return text;
}

std::vector<AxisTick> axis_ticks(double high, int count) {
  if (!(high > 0) || !(high < 1e300)) high = 1;
  count = std::clamp(count, 2, kMostTicks);
  const double step = round_step(high / count);
  std::vector<AxisTick> ticks;
  for (int i = 0; i <= kMostTicks && i * step <= high + 1e-6 * step; ++i)
    ticks.push_back({i * step, tick_text(i * step, step, high)});
  // A step may be nearly as long as the axis, and only 0 a multiple of it.
  return ticks.size() >= 2 || count >= kMostTicks ? ticks : axis_ticks(high, count + 1);
}

}  // namespace concertina
