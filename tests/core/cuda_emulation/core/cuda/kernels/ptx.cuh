// The instructions of core/cuda/kernels/ptx.cuh, from their definition in the PTX ISA.
#pragma once

#include <cuda_runtime.h>

#include <array>
#include <cstdint>

#include "core/tensor.h"

namespace concertina::cuda {

inline std::uint32_t pack_bf16(float low, float high) {
  return rounded<Bf16>(low).bits | static_cast<std::uint32_t>(rounded<Bf16>(high).bits) << 16;
}
inline float low_bf16(std::uint32_t packed) {
  return to_float(Bf16{static_cast<std::uint16_t>(packed)});
}
inline float high_bf16(std::uint32_t packed) {
  return to_float(Bf16{static_cast<std::uint16_t>(packed >> 16)});
}

/// What all lanes gave to an instruction.
template <class T>
std::array<T, 32> of_all_lanes(const char* instruction, const T& mine) {
  std::array<T, 32> all;
  std::memcpy(all.data(), emulation::exchange(instruction, &mine, sizeof(T)), sizeof(all));
  return all;
}

/// The fragments of one lane, by the formulas of the ISA's section "Matrix Fragments for
/// mma.m16n8k16 with floating point type": groupID = lane / 4, threadID_in_group = lane % 4.
inline void mma(float (&c)[4], const std::uint32_t (&a)[4], std::uint32_t b0, std::uint32_t b1) {
  struct Operands {
    std::uint32_t a[4], b[2];
  };
  const auto all = of_all_lanes("mma", Operands{{a[0], a[1], a[2], a[3]}, {b0, b1}});
  float left[16][16], right[16][8];
  for (unsigned lane = 0; lane < 32; ++lane) {
    const unsigned group = lane / 4, thread = lane % 4;
    for (unsigned i = 0; i < 8; ++i) {
      const unsigned row = i < 2 || (i >= 4 && i < 6) ? group : group + 8;
      const unsigned column = thread * 2 + (i & 1) + (i >= 4 ? 8 : 0);
      const std::uint32_t word = all[lane].a[i / 2];
      left[row][column] = i % 2 == 0 ? low_bf16(word) : high_bf16(word);
    }
    for (unsigned i = 0; i < 4; ++i) {
      const unsigned row = thread * 2 + (i & 1) + (i >= 2 ? 8 : 0);
      const std::uint32_t word = all[lane].b[i / 2];
      right[row][group] = i % 2 == 0 ? low_bf16(word) : high_bf16(word);
    }
  }
  const unsigned group = emulation::lane() / 4, thread = emulation::lane() % 4;
  for (unsigned i = 0; i < 4; ++i) {
    const unsigned row = i < 2 ? group : group + 8, column = thread * 2 + (i & 1);
    for (unsigned k = 0; k < 16; ++k) c[i] += left[row][k] * right[k][column];
  }
}

/// Element [row][column] of matrix i, whose rows lanes 8 i to 8 i + 7 point at.
template <class Rows>
std::uint32_t matrix_element(const Rows& rows, unsigned i, unsigned row, unsigned column) {
  return rows[8 * i + row][column].bits;
}

inline void load_matrices(std::uint32_t (&to)[4], const Bf16* row) {
  if (reinterpret_cast<std::uintptr_t>(row) % 16 != 0) std::abort();
  const auto rows = of_all_lanes("ldmatrix", row);
  const unsigned group = emulation::lane() / 4, pair = emulation::lane() % 4 * 2;
  for (unsigned i = 0; i < 4; ++i)
    to[i] = matrix_element(rows, i, group, pair) | matrix_element(rows, i, group, pair + 1) << 16;
}
inline void load_matrices_transposed(std::uint32_t (&to)[4], const Bf16* row) {
  if (reinterpret_cast<std::uintptr_t>(row) % 16 != 0) std::abort();
  const auto rows = of_all_lanes("ldmatrix.trans", row);
  const unsigned group = emulation::lane() / 4, pair = emulation::lane() % 4 * 2;
  for (unsigned i = 0; i < 4; ++i)
    to[i] = matrix_element(rows, i, pair, group) | matrix_element(rows, i, pair + 1, group) << 16;
}

}  // namespace concertina::cuda
