// A backend whose tensors host code cannot touch, as a GPU's: their pages are closed but while a
// kernel or a copy runs, and messages are copied late.
// Invariant: the bits are those of the backend inside.
#pragma once

#include <memory>

#include "core/backend.h"

namespace concertina {

std::unique_ptr<Backend> make_far_backend(std::unique_ptr<Backend> inner);

}  // namespace concertina
