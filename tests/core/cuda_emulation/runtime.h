// What tests may ask of the emulated device.
#pragma once

namespace concertina::emulation {

/// Compute capability of the device that is found from now on; 9.0 at first.
void set_compute_capability(int major, int minor);

}  // namespace concertina::emulation
