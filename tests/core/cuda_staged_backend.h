// A backend over host buffers that runs another backend on its device. Every buffer is copied to
// the device before a call and back after it, so tests written for host memory run on a GPU.
// Invariant: a device block is as large as its buffer, and guarded against writes past its end.
#pragma once

#include <memory>

#include "core/cuda/backend.h"

namespace concertina {

std::unique_ptr<Backend> make_staged_backend(std::unique_ptr<Backend> device);

}  // namespace concertina
