// The emulated device's clock. By default it is the host's: work is done when its call returns. A
// test may use its own clock, in which the device lags behind the host as a GPU does.
// Invariant: each thread has its own device time.
#pragma once

namespace concertina::emulation {

/// From now on, every kernel takes this long, and the host's calls take no time. At this point, the
/// last kernel has just ended. A negative value restores the host's clock.
void kernels_take(double seconds);
/// Advances the test's clock: the host does something else for this long.
void host_passes(double seconds);
/// Kernels since the last kernels_take().
int kernels_issued();
/// Events with a time that this thread has created.
int events_made();

/// Called by the emulated launches.
void kernel_issued();

}  // namespace concertina::emulation
