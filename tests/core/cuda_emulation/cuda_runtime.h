// Replaces CUDA's header of this name if kernels are compiled for the host: the keywords of device
// code, and launches.
#pragma once

#include <cuda_runtime_api.h>
#include <vector_functions.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <tuple>
#include <utility>

#include "block.h"
#include "device_clock.h"
#include "streams.h"

#undef __shared__
#undef __launch_bounds__
#define __launch_bounds__(...)
#define __shared__ thread_local  // shared by all fibers and, in a function, static

extern constinit thread_local uint3 threadIdx, blockIdx;
extern constinit thread_local dim3 blockDim, gridDim;

using std::max;
using std::min;

inline void __syncthreads() {
  concertina::emulation::wait_for_block();
}
inline void __syncwarp() {
  concertina::emulation::exchange("__syncwarp", nullptr, 0);
}
template <class T>
T shuffled(const char* operation, T x, unsigned from) {
  const std::byte* all = concertina::emulation::exchange(operation, &x, sizeof(T));
  std::memcpy(&x, all + from % 32 * sizeof(T), sizeof(T));
  return x;
}
template <class T>
T __shfl_xor_sync(unsigned, T x, int mask) {
  return shuffled("__shfl_xor_sync", x,
                  concertina::emulation::lane() ^ static_cast<unsigned>(mask));
}
template <class T>
T __shfl_sync(unsigned, T x, int from) {
  return shuffled("__shfl_sync", x, static_cast<unsigned>(from));
}

template <class... P, class... A>
cudaError_t cudaLaunchKernelEx(const cudaLaunchConfig_t* config, void (*kernel)(P...),
                               A&&... arguments) {
  const std::tuple<P...> values(std::forward<A>(arguments)...);
  const cudaLaunchConfig_t grid = *config;
  return concertina::emulation::submit(config->stream, [=] {
    concertina::emulation::run_grid(grid.gridDim, grid.blockDim, grid.dynamicSmemBytes,
                                    [&] { std::apply(kernel, values); });
    concertina::emulation::kernel_issued();
  });
}
template <class F>
cudaError_t cudaFuncSetAttribute(F*, cudaFuncAttribute, int) {
  return cudaSuccess;
}
