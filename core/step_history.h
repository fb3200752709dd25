// Values measured in recent steps, and their typical value.
// Invariant: nothing allocates between the constructor and typical().
#pragma once

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <cstdint>
#include <span>
#include <vector>

namespace concertina {

/// Returns the median; the mean of the middle two for an even number of values; 0 for none.
double median(std::vector<double> values);

/// Whether a multiple of `every` lies in (before, step]; always false if `every` is 0. A call may
/// span several steps.
inline bool is_due(std::int64_t before, std::int64_t step, std::int64_t every) {
  return every > 0 && step / every > before / every;
}

/// Returns the number of steps between runs of work that takes `share` of a step's time, so that on
/// average it takes at most `most_share` of it.
inline std::int64_t steps_between(double share, double most_share) {
  constexpr double kMostSteps = 1e6;
  return static_cast<std::int64_t>(std::ceil(std::clamp(share / most_share, 1.0, kMostSteps)));
}

class StepHistory {
 public:
  /// `width` is the number of values per step.
  explicit StepHistory(std::size_t width);

  void record(std::span<const double> metrics);
  std::size_t steps() const { return steps_; }
  /// Orders the last kKept steps by the sum of their values, and returns the mean of each value
  /// over the middle half, ignoring the first kWarmUp steps of the run if it has more. Medians of
  /// each value would sum to less than a median step, because disturbances affect different values.
  std::vector<double> typical() const;

  static constexpr std::size_t kKept = 64, kWarmUp = 2;

 private:
  std::size_t width_, steps_ = 0;
  std::vector<double> rows_;  // [kKept x width], step s in row s % kKept
};

}  // namespace concertina
