#include "io/figure/axis_scale.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

namespace concertina {
namespace {

constexpr int kMostTicks = 60;
constexpr double kMostDrawn = 1e300;  // so that differences are finite

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

AxisScale::AxisScale(const ChartAxis& axis, const std::vector<double>& values, double pad_share)
    : scale_(axis.scale) {
  bool any = false;
  const auto add = [&](double value) {
    if (!holds(value)) return;
    low_ = any ? std::min(low_, value) : value;
    high_ = any ? std::max(high_, value) : value;
    any = true;
  };
  for (const double value : values) add(value);
  if (axis.low) add(*axis.low);
  if (axis.high) add(*axis.high);
  if (axis.from_zero) add(0);
  if (!any) low_ = scale_ == Scale::linear ? 0 : 1, high_ = scale_ == Scale::linear ? 1 : 10;
  widen();
  pad(axis, pad_share);
}

void AxisScale::pad(const ChartAxis& axis, double share) {
  if (scale_ != Scale::linear) {
    const double factor = std::pow(high_ / low_, share);
    if (low_ != axis.low) low_ /= factor;
    if (high_ != axis.high) high_ *= factor;
    return;
  }
  const double more = share * (high_ - low_), low = low_;
  if (low_ != axis.low && low_ != 0) low_ = low_ > 0 ? std::max(0.0, low_ - more) : low_ - more;
  if (high_ != axis.high && (high_ != 0 || low == 0)) high_ += more;
}

void AxisScale::widen() {
  if (scale_ == Scale::linear) {
    // Below a millionth of their size, differences are not shown: labels could not tell them apart.
    const double least = 1e-6 * std::max(std::abs(low_), std::abs(high_));
    if (high_ - low_ > least) return;
    const double more = std::max(std::abs(low_), std::abs(high_)) * 0.1;
    low_ -= more > 0 ? more : 1;
    high_ += more > 0 ? more : 1;
  } else if (high_ / low_ < 1.2) {
    const double base = scale_ == Scale::log2 ? 2 : std::sqrt(10.0);
    low_ /= base;
    high_ *= base;
  }
}

bool AxisScale::holds(double value) const {
  return std::abs(value) < kMostDrawn && (scale_ == Scale::linear || value > 1 / kMostDrawn);
}

double AxisScale::at(double value) const {
  return scale_ == Scale::linear ? value : std::log(value);
}

double AxisScale::share(double value) const {
  return (at(value) - at(low_)) / (at(high_) - at(low_));
}

std::vector<AxisTick> AxisScale::ticks(int count) const {
  count = std::clamp(count, 2, kMostTicks);
  if (scale_ == Scale::linear) return linear_ticks(count);
  if (scale_ == Scale::log2) return power_ticks(count, 2);
  return high_ / low_ > 2000 ? power_ticks(count, 10) : decade_ticks(count);
}

std::vector<AxisTick> AxisScale::linear_ticks(int count) const {
  const double step = round_step((high_ - low_) / count);
  const double largest = std::max(std::abs(low_), std::abs(high_));
  std::vector<AxisTick> result;
  const double first = std::ceil(low_ / step - 1e-6);
  for (int i = 0; i <= kMostTicks; ++i) {
    const double value = (first + i) * step;
    if (!(value <= high_ + 1e-6 * step)) break;
    result.push_back({value + 0.0, tick_text(value + 0.0, step, largest)});
  }
  // A step may be nearly as long as the axis, and none of its multiples on it.
  return result.size() >= 2 || count >= kMostTicks ? result : linear_ticks(count + 1);
}

std::vector<AxisTick> AxisScale::power_ticks(int count, double base) const {
  const double first = std::ceil(std::log(low_) / std::log(base) - 1e-9);
  const double last = std::floor(std::log(high_) / std::log(base) + 1e-9);
  const double every = std::max(1.0, std::ceil((last - first + 1) / count));
  std::vector<AxisTick> result;
  for (double k = first; k <= last; k += every)
    result.push_back({std::pow(base, k), short_number(std::pow(base, k), base == 10 ? 1 : 4)});
  for (AxisTick& tick : result)  // numbers of ranks in full
    if (base == 2 && tick.value >= 1 && tick.value < 1e7)
      tick.label = fmt::format("{:.0f}", tick.value);
  return result.size() >= 2 ? result : linear_ticks(count);
}

std::vector<AxisTick> AxisScale::decade_ticks(int count) const {
  std::vector<AxisTick> result;
  for (const std::vector<double>& factors :
       {std::vector<double>{1, 2, 5}, std::vector<double>{1, 3}, std::vector<double>{1}}) {
    result.clear();
    for (double k = std::floor(std::log10(low_)); k <= std::log10(high_) + 1e-9; ++k)
      for (const double factor : factors)
        if (const double value = factor * std::pow(10, k);
            value >= low_ * (1 - 1e-9) && value <= high_ * (1 + 1e-9))
          result.push_back({value, short_number(value, 1)});
    if (static_cast<int>(result.size()) <= count) break;
  }
  return result.size() >= 2 ? result : linear_ticks(count);
}

}  // namespace concertina
