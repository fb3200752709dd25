#include "parallel/comm/clock_sync.h"

#include <algorithm>
#include <array>

#include "core/clock.h"
#include "core/error.h"

namespace concertina {
namespace {

constexpr std::size_t kTrips = 64;

/// Below this baseline, the difference between two estimates is error rather than drift.
constexpr double kShortestBaseline = 1e-3;

}  // namespace

ClockOffset estimate_offset(std::span<const RoundTrip> trips) {
  CONCERTINA_CHECK(!trips.empty(), "no round trips");
  const RoundTrip& best = *std::ranges::min_element(
      trips, {}, [](const RoundTrip& trip) { return trip.answered - trip.asked; });
  const double middle = best.asked + (best.answered - best.asked) / 2;
  return {middle, best.remote - middle, (best.answered - best.asked) / 2};
}

ClockMap::ClockMap(const ClockOffset& early, const ClockOffset& late)
    : at_(early.time), offset_(early.offset), error_(std::max(early.error, late.error)) {
  const double change = late.offset - early.offset, baseline = late.time - early.time;
  // A change within the errors is not drift: ranks on one machine share a clock.
  if (baseline < kShortestBaseline || std::abs(change) <= early.error + late.error)
    offset_ = early.error <= late.error ? early.offset : late.offset;
  else
    drift_ = change / baseline;
}

ClockOffset measure_offset(Communicator& world) {
  std::array<RoundTrip, kTrips> trips;
  double reply = 0;
  std::byte question{};
  const Bytes ask(&question, 1), answer = std::as_writable_bytes(std::span(&reply, 1));
  if (world.rank() > 0) {
    for (RoundTrip& trip : trips) {
      Work answered = world.irecv(answer, 0);
      trip.asked = now();
      world.isend(ask, 0).wait();
      answered.wait();
      trip.answered = now();
      trip.remote = reply;
    }
    return estimate_offset(trips);
  }
  for (int rank = 1; rank < world.size(); ++rank)
    for (std::size_t i = 0; i < kTrips; ++i) {
      world.irecv(ask, rank).wait();
      reply = now();
      world.isend(answer, rank).wait();
    }
  return {};
}

}  // namespace concertina
