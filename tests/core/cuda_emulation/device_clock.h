// The emulated device's time. As a rule it is the host's: work is done when its call returns. A
// test may have its own time instead, in which the device lags behind the host as a GPU does.
// Invariant: each thread has a device to itself, as far as time is concerned.
#pragma once

namespace concertina::emulation {

/// From now on every kernel takes this long, and the host's calls take no time at all; behind
/// synchronization the device's last kernel ended just now. Negative: the host's time again.
void kernels_take(double seconds);
/// In the test's time: the host does something else for this long.
void host_passes(double seconds);
/// Since the last kernels_take().
int kernels_issued();
/// By this thread.
int events_made();

/// What the emulated launches call.
void kernel_issued();

}  // namespace concertina::emulation
