#include "parallel/runtime/unit_clock.h"

#include <algorithm>
#include <utility>

#include "core/clock.h"

namespace concertina {

UnitClock::UnitClock(int units)
    : sums_(static_cast<std::size_t>(units * kPasses)),
      counts_(sums_.size()),
      steps_(sums_.size()) {}

double UnitClock::start() {
  return mark_ = now();
}

void UnitClock::unit_done(int unit, Pass pass) {
  const auto cell = static_cast<std::size_t>(unit * kPasses + static_cast<int>(pass));
  const double time = now();
  sums_[cell] += time - std::exchange(mark_, time);
  ++counts_[cell];
}

void UnitClock::end_step() {
  for (std::size_t cell = 0; cell < sums_.size(); ++cell)
    if (counts_[cell] > 0) sums_[cell] /= counts_[cell];
  steps_.record(sums_);
  std::fill(sums_.begin(), sums_.end(), 0.0);
  std::fill(counts_.begin(), counts_.end(), 0);
}

std::vector<UnitSeconds> UnitClock::seconds() const {
  const std::vector<double> means = steps_.typical();
  std::vector<UnitSeconds> units;
  for (std::size_t cell = 0; cell < means.size(); cell += kPasses)
    units.push_back({means[cell], means[cell + 1], means[cell + 2], means[cell + 3]});
  return units;
}

}  // namespace concertina
