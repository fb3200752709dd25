// Where a value lies on an axis, and the axis' ticks.
// Invariants: linear ticks are at 1, 2 or 5 times a power of ten; all lie on the axis; whatever the
// data, the axis has a length above 0 and at most kMostTicks ticks.
#pragma once

#include <string>
#include <vector>

#include "io/figure/chart.h"

namespace concertina {

struct AxisTick {
  double value = 0;
  std::string label;
};

class AxisScale {
 public:
  /// `values`: all that the axis has to hold; those that it cannot hold are skipped. Data do not
  /// touch the ends (`pad`: a share of the axis), but where `axis` says the end, or it is 0.
  AxisScale(const ChartAxis& axis, const std::vector<double>& values, double pad = 0.04);

  /// Whether the axis can hold the value: finite (below 1e300), above 0 if it is logarithmic.
  bool holds(double value) const;
  /// From 0 (low end) to 1; only for a value that it holds.
  double share(double value) const;
  /// About `count` of them, at most.
  std::vector<AxisTick> ticks(int count) const;
  double low() const { return low_; }
  double high() const { return high_; }

 private:
  double at(double value) const;  // logarithm or itself
  void widen();
  void pad(const ChartAxis& axis, double share);
  std::vector<AxisTick> linear_ticks(int count) const;
  std::vector<AxisTick> power_ticks(int count, double base) const;
  std::vector<AxisTick> decade_ticks(int count) const;

  Scale scale_;
  double low_ = 0, high_ = 1;
};

/// "0.25", "12,000", "3.5e-06": `digits` significant ones at most.
std::string short_number(double value, int digits);

}  // namespace concertina
