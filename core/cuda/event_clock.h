// Marks as events in the backend's stream, and ranges for NVIDIA's profilers.
// Invariants: events are created by reserve(), or by the first step that needs more marks. settle()
// locates the device's time on the host's clock, so that neither drift nor the limited precision of
// differences between events matters.
#pragma once

#include <deque>
#include <vector>

#include "core/cuda/base/handles.h"
#include "core/kernel_clock.h"

namespace concertina::cuda {

class EventClock final : public KernelClock {
 public:
  /// `stream` must outlive the clock.
  explicit EventClock(const Stream& stream) : stream_(stream) {}

  void reserve(std::size_t marks) override;
  void forget_room() override { wanted_ = 0; }
  double mark() override;
  void settle() override;
  double time(double mark) const override;
  double mark_seconds() const override { return 2e-6; }  // not measured
  void enter(const char* name) override;
  void leave() override;

 private:
  double calibrate();

  const Stream& stream_;
  Event origin_;
  std::deque<Event> events_;
  std::vector<double> times_;  // times of the current marks, after settle()
  std::size_t wanted_ = 0, taken_ = 0;
  bool settled_ = false;
};

}  // namespace concertina::cuda
