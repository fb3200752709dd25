// Clock synchronization: estimates each rank's clock offset from rank 0 by ping-pong.
// Source: Cristian, "Probabilistic clock synchronization", 1989: the shortest of many round trips
// is the most accurate, with an error of at most half its length. Two estimates give the drift.
// Invariant: the estimators are pure; only measure_offset() sends messages.
#pragma once

#include <span>

#include "parallel/comm/communicator.h"

namespace concertina {

/// One exchange: times on the local clock, and `remote`, read from the other clock in between.
struct RoundTrip {
  double asked = 0, remote = 0, answered = 0;
};

/// Offset of the reference clock from the local clock at local time `time`. The true offset is
/// within `error` if both clocks run at a constant rate during a round trip.
struct ClockOffset {
  double time = 0, offset = 0, error = 0;
};

/// Returns the offset given by the shortest round trip. Requires at least one.
ClockOffset estimate_offset(std::span<const RoundTrip> trips);

/// Maps local times to the reference clock by a line through two estimates.
class ClockMap {
 public:
  ClockMap() = default;  // identity
  ClockMap(const ClockOffset& early, const ClockOffset& late);
  double operator()(double time) const { return time + offset_ + drift_ * (time - at_); }
  /// Seconds that the reference clock gains per local second.
  double drift() const { return drift_; }
  /// The larger of the errors of the two estimates.
  double error() const { return error_; }

 private:
  double at_ = 0, offset_ = 0, drift_ = 0, error_ = 0;
};

/// Returns this rank's offset from rank 0's clock. Collective over `world`.
ClockOffset measure_offset(Communicator& world);

}  // namespace concertina
