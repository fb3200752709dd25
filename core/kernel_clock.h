// When kernels run, on the host's clock.
// On a CPU a kernel has ended when its call returns. A GPU works through what the host issued
// ahead of it, so that the clock between two calls would show how long issuing takes. A mark is a
// point between kernels: it passes when all kernels issued before it have ended, and not before
// the host has issued it.
//
// All times of a rank are marks. An action lasts from the mark in front of its first kernel to the
// one after its last, with the gaps inside it. A rank idles between
// two actions where the device has nothing to do. A host that waits for a message while the device
// still computes costs nothing: both ends of its wait pass when the device is through.
#pragma once

#include <cstddef>

namespace concertina {

class KernelClock {
 public:
  virtual ~KernelClock() = default;
  /// Makes room for `marks` more marks between two calls of settle(), which then allocate nothing.
  virtual void reserve(std::size_t marks) = 0;
  /// All who reserved room are gone: those who come next share it.
  virtual void forget_room() = 0;
  /// A point after all kernels issued so far: the argument of time().
  virtual double mark() = 0;
  /// Waits until all marks have passed. The next mark() forgets them.
  virtual void settle() = 0;
  /// The time of `mark` in seconds on the clock of now(). Call it after settle().
  virtual double time(double mark) const = 0;
  /// About what a mark costs the device; two in a row may be that far apart.
  virtual double mark_seconds() const = 0;

  /// For profilers: what the host issues until leave() belongs to `name`, which stays where it is.
  virtual void enter(const char* /*name*/) {}
  virtual void leave() {}
};

/// For kernels that run within their calls: marks are readings of the host's clock.
KernelClock& host_clock();

/// The seconds of the kernels that `issue` issues, outside of a step: marks that wait for a
/// settle() are lost.
template <class F>
double kernel_seconds(KernelClock& clock, F&& issue) {
  const double start = clock.mark();
  issue();
  const double end = clock.mark();
  clock.settle();
  return clock.time(end) - clock.time(start);
}

}  // namespace concertina
