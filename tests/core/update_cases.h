// Random calls of the kernels of optimizers; part of kernel_cases().
#pragma once

#include <cstdint>
#include <vector>

#include "tests/core/kernel_cases.h"

namespace concertina {

/// One round of each kernel over `count` elements. `fresh`: as at the first step of a run.
void add_update_cases(std::vector<KernelCase>& cases, unsigned seed, std::int64_t count,
                      bool fresh);

}  // namespace concertina
