#include "parallel/runtime/unit_clock.h"

#include <algorithm>

#include "core/error.h"

namespace concertina {
namespace {

constexpr std::int64_t kFirst = 4;

}  // namespace

UnitClock::UnitClock(int units, std::size_t marks, KernelClock& clock)
    : clock_(clock),
      sums_(static_cast<std::size_t>(units * kPasses)),
      counts_(sums_.size()),
      means_(sums_.size()),
      steps_(sums_.size()) {
  laps_.reserve(marks);
  clock.reserve(marks);
}

void UnitClock::begin_step() {
  const std::int64_t step = steps_begun_++;
  measuring_ = every_step_ || clock_.mark_seconds() == 0 || step < kFirst || step % kStride == 0;
  laps_.clear();
}

void UnitClock::lap(int cell) {
  if (!measuring_) return;
  CONCERTINA_CHECK(laps_.size() < laps_.capacity(), "more than {} laps in a step", laps_.size());
  laps_.push_back({cell, clock_.mark()});
}

void UnitClock::start() {
  lap(kStart);
}

double UnitClock::end_step() {
  if (!measuring_) return 0;
  measuring_ = false;
  std::fill(sums_.begin(), sums_.end(), 0.0);
  std::fill(counts_.begin(), counts_.end(), 0);
  double all = 0, last = 0;
  for (const auto& [cell, mark] : laps_) {
    const double time = clock_.time(mark), seconds = time - last;
    last = time;
    if (cell == kStart) continue;
    sums_[static_cast<std::size_t>(cell)] += seconds;
    ++counts_[static_cast<std::size_t>(cell)];
    if (static_cast<Pass>(cell % kPasses) != Pass::pack) all += seconds;
  }
  for (std::size_t cell = 0; cell < sums_.size(); ++cell)
    if (counts_[cell] > 0) means_[cell] = sums_[cell] / counts_[cell];
  steps_.record(means_);
  return all;
}

std::vector<UnitSeconds> UnitClock::seconds() const {
  const std::vector<double> means = steps_.typical();
  std::vector<UnitSeconds> units;
  for (std::size_t cell = 0; cell < means.size(); cell += kPasses)
    units.push_back({means[cell], means[cell + 1], means[cell + 2], means[cell + 3]});
  return units;
}

}  // namespace concertina
