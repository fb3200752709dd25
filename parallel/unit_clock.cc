#include "parallel/unit_clock.h"

#include <algorithm>

#include "core/clock.h"

namespace concertina {

UnitClock::UnitClock(int units, std::function<void()> between)
    : between_(std::move(between)),
      sums_(static_cast<std::size_t>(units * kPasses)),
      counts_(sums_.size()),
      steps_(sums_.size()) {}

void UnitClock::start() {
  mark_ = now();
}

void UnitClock::unit_done(int unit, Pass pass) {
  const auto cell = static_cast<std::size_t>(unit * kPasses + static_cast<int>(pass));
  sums_[cell] += now() - mark_;
  ++counts_[cell];
  between_();
  mark_ = now();
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
