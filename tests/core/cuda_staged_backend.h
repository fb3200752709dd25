// A backend over host buffers that runs another one on its device: every buffer is copied in before
// a call and out after it, so that tests written for host memory run on a GPU unchanged.
// Invariant: a device block is as large as its buffer, and guarded against writes past its end.
#pragma once

#include <memory>

#include "core/cuda/backend.h"

namespace concertina {

std::unique_ptr<Backend> make_staged_backend(std::unique_ptr<Backend> device);

}  // namespace concertina
