// The best value of a sequence and the number of values since. Invariant: pure; of equal values,
// the first is the best; a non-finite value is never the best.
#pragma once

#include <cmath>
#include <limits>

namespace concertina {

class BestMetric {
 public:
  /// `minimise`: whether smaller is better. `least`: minimum improvement over the best value.
  explicit BestMetric(bool minimise, double least = 0) : minimise_(minimise), least_(least) {}

  /// Processes the next value and returns whether it is the best so far.
  bool see(double value) {
    const double gain = minimise_ ? best_ - value : value - best_;
    const bool better = std::isfinite(value) && (std::isnan(best_) || gain > least_);
    no_better_ = better ? 0 : no_better_ + 1;
    if (better) best_ = value;
    return better;
  }

  /// NaN if there is none yet.
  double best() const { return best_; }
  /// Number of consecutive values that were not the best.
  int no_better() const { return no_better_; }
  /// Restores the best() and no_better() of another object.
  void restore(double best, int no_better) { best_ = best, no_better_ = no_better; }

 private:
  bool minimise_;
  double least_;
  double best_ = std::numeric_limits<double>::quiet_NaN();
  int no_better_ = 0;
};

}  // namespace concertina
