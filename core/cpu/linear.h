// Linear maps on the CPU: single-threaded oneDNN products over fixed tiles, with what follows a
// product done on the tile while it is in cache.
#pragma once

#include "core/backend.h"
#include "core/cpu/team.h"

namespace concertina::cpu {

/// `context` outlives the result.
std::unique_ptr<Linear> make_linear(const LinearShape& shape, Context& context);

}  // namespace concertina::cpu
