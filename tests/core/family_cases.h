// Random calls of the kernels that Llama, BERT and ViT have and GPT-2 has not; part of
// kernel_cases().
#pragma once

#include <vector>

#include "tests/core/kernel_cases.h"

namespace concertina {

/// One round of each kernel.
void add_family_cases(std::vector<KernelCase>& cases, unsigned seed, DType compute);

}  // namespace concertina
