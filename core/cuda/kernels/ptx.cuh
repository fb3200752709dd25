// Instructions without a C++ equivalent: conversion to bf16, tensor cores, and loads for them.
// The fragment layouts follow "Matrix Fragments for mma.m16n8k16" in NVIDIA's PTX ISA.
//
// A lane of a warp has group = lane / 4 and pair = lane % 4.
#pragma once

#include <cuda_runtime.h>

#include <cstdint>

#include "core/tensor.h"

namespace concertina::cuda {

/// Returns two bf16 values, `low` in the lower half, rounded to nearest, ties to even.
__device__ inline std::uint32_t pack_bf16(float low, float high) {
  std::uint32_t packed;
  asm("cvt.rn.bf16x2.f32 %0, %1, %2;" : "=r"(packed) : "f"(high), "f"(low));
  return packed;
}
__device__ inline float low_bf16(std::uint32_t packed) {
  return __uint_as_float(packed << 16);
}
__device__ inline float high_bf16(std::uint32_t packed) {
  return __uint_as_float(packed & 0xFFFF0000U);
}

/// c[16,8] += a[16,16] b[16,8], with bf16 operands. Fragments: a: {[group][2 pair], [group + 8][2
/// pair], [group][2 pair + 8], [group + 8][2 pair + 8]}, each with its right neighbor;
/// b: {[2 pair][group], [2 pair + 8][group]}, each with its lower neighbor;
/// c: [group][2 pair], [group][2 pair + 1], [group + 8][2 pair], [group + 8][2 pair + 1].
__device__ inline void mma(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0,
                           std::uint32_t b1) {
  asm volatile(
      "mma.sync.aligned.m16n8k16.row.col.f32.bf16.bf16.f32 "
      "{%0, %1, %2, %3}, {%4, %5, %6, %7}, {%8, %9}, {%0, %1, %2, %3};"
      : "+f"(c[0]), "+f"(c[1]), "+f"(c[2]), "+f"(c[3])
      : "r"(a[0]), "r"(a[1]), "r"(a[2]), "r"(a[3]), "r"(b0), "r"(b1));
}

/// Loads four 8x8 bf16 matrices from shared memory. Lanes 8 i to 8 i + 7 supply the addresses of
/// the rows of matrix i, 16 bytes each. to[i] is [group][2 pair] and its right neighbor.
__device__ inline void load_matrices(std::uint32_t (&to)[4], const Bf16* row) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}
/// Likewise for the transposed matrices: to[i] is [2 pair][group] and its lower neighbor.
__device__ inline void load_matrices_transposed(std::uint32_t (&to)[4], const Bf16* row) {
  const auto address = static_cast<std::uint32_t>(__cvta_generic_to_shared(row));
  asm volatile("ldmatrix.sync.aligned.m8n8.x4.trans.shared.b16 {%0, %1, %2, %3}, [%4];"
               : "=r"(to[0]), "=r"(to[1]), "=r"(to[2]), "=r"(to[3])
               : "r"(address)
               : "memory");
}

}  // namespace concertina::cuda
