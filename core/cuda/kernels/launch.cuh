// Kernel launches, which are checked and named.
#pragma once

#include <cuda_runtime.h>

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <utility>

#include "core/cuda/base/check.h"
#include "core/tensor.h"

namespace concertina::cuda {

using Int = std::int64_t;

struct Grid {
  dim3 blocks;
  unsigned threads = 0;  // a multiple of 32
  std::size_t shared_bytes = 0;
};

template <class... P, class... A>
void launch(const char* name, const Grid& grid, cudaStream_t stream, void (*kernel)(P...),
            A&&... arguments) {
  cudaLaunchConfig_t config{};
  config.gridDim = grid.blocks;
  config.blockDim = dim3(grid.threads);
  config.dynamicSmemBytes = grid.shared_bytes;
  config.stream = stream;
  check(cudaLaunchKernelEx(&config, kernel, std::forward<A>(arguments)...), name);
}

inline unsigned blocks_for(Int count, Int a_block) {
  return static_cast<unsigned>((count + a_block - 1) / a_block);
}

/// Returns a grid of one block of up to 256 threads per row of `width` elements, n per access.
inline Grid rows_grid(Int rows, Int width, int n) {
  const Int warps = std::clamp<Int>((width / n + 31) / 32, 1, 8);
  return {dim3(static_cast<unsigned>(rows)), static_cast<unsigned>(warps) * 32};
}

/// Calls f.template operator()<T>(), where T is the type of the activations.
template <class F>
void with_type(DType type, F&& f) {
  if (type == DType::bf16)
    f.template operator()<Bf16>();
  else
    f.template operator()<float>();
}

inline bool aligned(std::initializer_list<View> buffers) {
  for (const View& buffer : buffers)
    if (reinterpret_cast<std::uintptr_t>(buffer.data) % 16 != 0) return false;
  return true;
}

/// Calls f.template operator()<T, N>(), where T is the type of the activations and N their number
/// per access: 16 bytes if all rows of `width` elements in these buffers are aligned to that.
template <class F>
void with_access(DType type, Int width, std::initializer_list<View> buffers, F&& f) {
  const bool vectors = aligned(buffers) && width * static_cast<Int>(size_of(type)) % 16 == 0;
  with_type(type, [&]<class T>() {
    vectors ? f.template operator()<T, 16 / sizeof(T)>() : f.template operator()<T, 1>();
  });
}

}  // namespace concertina::cuda
