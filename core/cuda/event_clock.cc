#include "core/cuda/event_clock.h"

#include <nvtx3/nvToolsExt.h>

#include "core/clock.h"
#include "core/error.h"

namespace concertina::cuda {
namespace {

constexpr std::size_t kMore = 64;
constexpr double kCloseSeconds = 30e-6;
constexpr int kTries = 4;

}  // namespace

void EventClock::reserve(std::size_t marks) {
  wanted_ += marks;
  while (events_.size() < wanted_) events_.emplace_back();
  times_.reserve(events_.size());
}

double EventClock::mark() {
  if (settled_) taken_ = 0, settled_ = false;
  if (taken_ == events_.size()) reserve(events_.size() - wanted_ + kMore);
  events_[taken_].record(stream_);
  return static_cast<double>(taken_++);
}

void EventClock::settle() {
  stream_.synchronize();
  const double origin = calibrate();
  times_.clear();
  for (std::size_t i = 0; i < taken_; ++i)
    times_.push_back(origin - origin_.seconds_since(events_[i]));
  settled_ = true;
}

/// Records origin_ in the idle stream, and returns its time on the host's clock, which is read
/// before and after. Repeats if the host was delayed in between.
double EventClock::calibrate() {
  for (int left = kTries;;) {
    const double before = now();
    origin_.record(stream_);
    origin_.wait();
    const double behind = now();
    if (--left == 0 || behind - before <= kCloseSeconds) return before + (behind - before) / 2;
  }
}

double EventClock::time(double mark) const {
  const auto index = static_cast<std::size_t>(mark);
  CONCERTINA_CHECK(settled_ && index < taken_, "mark {} of {} has no time yet", index, taken_);
  return times_[index];
}

void EventClock::enter(const char* name) {
  nvtxRangePushA(name);
}

void EventClock::leave() {
  nvtxRangePop();
}

}  // namespace concertina::cuda
