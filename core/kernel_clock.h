// The times at which kernels run, on the host's clock.
// On a CPU, a kernel has finished when its call returns. A GPU executes what the host issued
// earlier, so reading the clock around a call would measure the time to issue it. A mark is a point
// between kernels: it passes when all kernels issued before it have finished, and not before the
// host has issued it.
//
// All times of a rank are marks. An action lasts from the mark before its first kernel to the mark
// after its last, including the gaps. A rank idles between two actions while the device has no
// work. Waiting on the host for a message while the device is computing costs nothing, because
// the marks before and after the wait both pass when the device finishes.
#pragma once

#include <cstddef>

namespace concertina {

class KernelClock {
 public:
  virtual ~KernelClock() = default;
  /// Reserves `marks` more marks between two calls of settle(), so that they do not allocate.
  virtual void reserve(std::size_t marks) = 0;
  /// Discards all reservations.
  virtual void forget_room() = 0;
  /// Sets a mark after all kernels issued so far, and returns the argument for time().
  virtual double mark() = 0;
  /// Waits until all marks have passed. The next mark() discards them.
  virtual void settle() = 0;
  /// Returns the time of `mark` in seconds, on the clock of now(). Valid after settle().
  virtual double time(double mark) const = 0;
  /// Returns the approximate device time per mark, by which two consecutive marks may differ.
  virtual double mark_seconds() const = 0;

  /// For profilers: attributes work issued until leave() to `name`, which must stay valid.
  virtual void enter(const char* /*name*/) {}
  virtual void leave() {}
};

/// Returns the clock for kernels that run within their calls. Its marks read the host's clock.
KernelClock& host_clock();

/// Returns the time in seconds that the kernels issued by `issue` take. Must be called outside of a
/// step, because it discards pending marks.
template <class F>
double kernel_seconds(KernelClock& clock, F&& issue) {
  const double start = clock.mark();
  issue();
  const double end = clock.mark();
  clock.settle();
  return clock.time(end) - clock.time(start);
}

}  // namespace concertina
