// Measures the CPU backend's kernels that are not hidden behind products, on one thread, in fp32
// and bf16, each with a copy of its bytes. A copy bypasses the caches, which a kernel does not, so
// a kernel must reach half the copy's rate: exit code 1 if one is slower.
// usage: cpu_kernel_bench [INSTRUCTION_SET]
#include <fmt/format.h>

#include "core/error.h"
#include "tests/core/kernels/rates.h"

int main(int argc, char** argv) {
  using namespace concertina;
  try {
    const auto device = make_cpu_backend(1, argc > 1 ? argv[1] : "");
    constexpr RateSizes kSizes{8, 512, 1024, 8192, 1 << 23, 1, 5, true, 0.5};
    KernelRates rates(*device, kSizes);
    rates.copy(std::size_t{1} << 28);
    for (const DType compute : {DType::f32, DType::bf16}) {
      fmt::print("{}\n", name_of(compute));
      rates.rows(compute);
    }
    rates.attempt([&] { rates.flat(); });
    return rates.slow() == 0 ? 0 : 1;
  } catch (const Error& error) {
    fmt::print(stderr, "{}\n", error.what());
    return static_cast<int>(error.code());
  }
}
