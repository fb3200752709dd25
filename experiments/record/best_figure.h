// The best of a figure that is seen again and again, and how long ago that was.
// Invariant: pure; of equal figures the first is the best; what is not finite is never the best.
#pragma once

#include <cmath>
#include <limits>

namespace concertina {

class BestFigure {
 public:
  /// `minimise`: smaller is better. `least`: by how much a figure has to be better than the best.
  explicit BestFigure(bool minimise, double least = 0) : minimise_(minimise), least_(least) {}

  /// Takes the next figure, and returns whether it is the best so far.
  bool see(double value) {
    const double gain = minimise_ ? best_ - value : value - best_;
    const bool better = std::isfinite(value) && (std::isnan(best_) || gain > least_);
    no_better_ = better ? 0 : no_better_ + 1;
    if (better) best_ = value;
    return better;
  }

  /// NaN: there is none yet.
  double best() const { return best_; }
  /// Figures in a row that were not the best.
  int no_better() const { return no_better_; }
  /// Goes on from where another one was.
  void restore(double best, int no_better) { best_ = best, no_better_ = no_better; }

 private:
  bool minimise_;
  double least_;
  double best_ = std::numeric_limits<double>::quiet_NaN();
  int no_better_ = 0;
};

}  // namespace concertina
