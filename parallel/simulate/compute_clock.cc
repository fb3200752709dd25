#include "parallel/simulate/compute_clock.h"

#include <algorithm>
#include <limits>

namespace concertina {

void ComputeClock::take(int rank, double start, double end, double share) {
  if (share > 0 && end > start)
    shares_[static_cast<std::size_t>(rank)].push_back({start, end, share});
}

double ComputeClock::end(int rank, double start, double seconds) {
  std::vector<Share>& shares = shares_[static_cast<std::size_t>(rank)];
  std::erase_if(shares, [&](const Share& one) { return one.end <= start; });
  // Advances from one start or end of a message to the next. `next` is one of them and later than
  // `time`, so there are at most twice as many rounds as messages, whatever the values.
  constexpr double kNone = std::numeric_limits<double>::infinity();
  for (double time = start;;) {
    double rate = 1, next = kNone;
    for (const Share& one : shares) {
      if (one.start > time) next = std::min(next, one.start);
      if (one.start > time || one.end <= time) continue;
      rate -= one.share;
      next = std::min(next, one.end);
    }
    rate = std::max(rate, 0.0);
    if (next == kNone) return time + seconds;  // no more messages
    if (seconds <= rate * (next - time)) return rate > 0 ? time + seconds / rate : time;
    seconds -= rate * (next - time);
    time = next;
  }
}

}  // namespace concertina
