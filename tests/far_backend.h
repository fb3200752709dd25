// A backend whose tensors, like a GPU's, are inaccessible to host code: their pages are accessible
// only while a kernel or a copy runs, and messages are copied late.
// Invariant: the results are bit-identical to those of the inner backend.
#pragma once

#include <memory>

#include "core/backend.h"

namespace concertina {

std::unique_ptr<Backend> make_far_backend(std::unique_ptr<Backend> inner);

}  // namespace concertina
