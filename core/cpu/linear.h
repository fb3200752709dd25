// Linear maps on the CPU: single-threaded oneDNN products over fixed tiles, with what follows a
// product done on the tile while it is in cache.
#pragma once

#include "core/backend.h"
#include "core/cpu/kernels.h"
#include "core/cpu/team.h"

namespace concertina::cpu {

std::unique_ptr<Linear> make_linear(const LinearShape& shape, const LoopTable& loops,
                                    const Team& team, Workspace& workspace);

}  // namespace concertina::cpu
