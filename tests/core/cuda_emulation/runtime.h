// What tests may change in the emulated device.
#pragma once

namespace concertina::emulation {

/// Sets the compute capability of the device from now on; the default is 9.0.
void set_compute_capability(int major, int minor);

}  // namespace concertina::emulation
