// Checks what only an emulation can show: no result depends on which warps run first between two
// barriers.
#include <gtest/gtest.h>

#include <cstring>

#include "block.h"
#include "core/cuda/backend.h"
#include "tests/core/cuda_staged_backend.h"
#include "tests/core/kernels/cases.h"

namespace concertina {
namespace {

std::vector<Output> run(const KernelCase& kernel, bool reversed) {
  emulation::reverse_threads(reversed);
  const auto backend = make_staged_backend(cuda::make_cuda_backend({}));
  const auto outputs = kernel.run(*backend);
  emulation::reverse_threads(false);
  return outputs;
}

TEST(EmulationTest, TheOrderOfThreadsNeverChangesABit) {
  for (const Precision& precision : kPrecisions)
    for (const KernelCase& kernel : kernel_cases(5, 2, precision)) {
      const auto ascending = run(kernel, false), descending = run(kernel, true);
      for (std::size_t i = 0; i < ascending.size(); ++i)
        EXPECT_EQ(0, std::memcmp(ascending[i].values.data(), descending[i].values.data(),
                                 ascending[i].values.size() * sizeof(float)))
            << kernel.name << ": " << ascending[i].name;
    }
}

}  // namespace
}  // namespace concertina
