// Figures of the last steps, and what is typical of them.
// Invariant: no allocation after the constructor until typical().
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace concertina {

/// The middle value, the mean of the two middle ones of an even number; 0 of none.
double median(std::vector<double> values);

/// Whether a multiple of `every` is reached on the way from `before` steps to `step`; never for 0.
/// A step of the run may do several at once.
inline bool is_due(std::int64_t before, std::int64_t step, std::int64_t every) {
  return every > 0 && step / every > before / every;
}

/// Every how many steps to do what takes `share` of a step's time, so that it takes at most
/// `most_share` of it in the mean.
inline std::int64_t steps_between(double share, double most_share) {
  constexpr double kMostSteps = 1e6;
  return static_cast<std::int64_t>(std::ceil(std::clamp(share / most_share, 1.0, kMostSteps)));
}

class StepHistory {
 public:
  /// `width` figures a step.
  explicit StepHistory(std::size_t width);

  void record(std::span<const double> figures);
  std::size_t steps() const { return steps_; }
  /// Means over the typical steps: of the last kKept (the first kWarmUp of all left out where there
  /// are more) the middle half by the sum of their figures. Medians figure by figure would sum to
  /// less than a median step, since what disturbs a step hits any of them.
  std::vector<double> typical() const;

  static constexpr std::size_t kKept = 64, kWarmUp = 2;

 private:
  std::size_t width_, steps_ = 0;
  std::vector<double> rows_;  // [kKept x width], step s in row s % kKept
};

}  // namespace concertina
