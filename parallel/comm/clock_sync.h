// One clock for all ranks: how far each rank's clock is from rank 0's, by ping-pong.
// Source: Cristian, "Probabilistic clock synchronization", 1989: of many round trips the shortest
// says most, and bounds the error by half its length. Two estimates give the drift between them.
// Invariant: the estimators are pure; only measure_offset() sends messages.
#pragma once

#include <span>

#include "parallel/comm/communicator.h"

namespace concertina {

/// One exchange: asked and answered on the own clock, `remote` is the other clock in between.
struct RoundTrip {
  double asked = 0, remote = 0, answered = 0;
};

/// reference clock - own clock, at `time` of the own clock, with at most `error` between it and the
/// truth if clocks run evenly over a round trip.
struct ClockOffset {
  double time = 0, offset = 0, error = 0;
};

/// The offset by the shortest of at least one round trip.
ClockOffset estimate_offset(std::span<const RoundTrip> trips);

/// The own clock's times on the reference clock, by a line through two estimates.
class ClockMap {
 public:
  ClockMap() = default;  // the same clock
  ClockMap(const ClockOffset& early, const ClockOffset& late);
  double operator()(double time) const { return time + offset_ + drift_ * (time - at_); }
  /// Seconds that the reference clock gains in a second.
  double drift() const { return drift_; }
  /// The larger error of the two estimates.
  double error() const { return error_; }

 private:
  double at_ = 0, offset_ = 0, drift_ = 0, error_ = 0;
};

/// Collective over `world`: this rank's offset from rank 0's clock.
ClockOffset measure_offset(Communicator& world);

}  // namespace concertina
