// Tiles of bf16 attention on tensor cores. A warp processes 16 of the block's 64 own rows and all
// other rows of a tile, with sums in fp32 (FlashAttention-2, Dao 2023).
// Invariant: a tile in shared memory is zero after its last valid row and column, so that products
// need no mask.
//
// Dimensions: D head dimension, kD that of the tile (a multiple of 16). For fragments, see ptx.cuh;
// the sums of a [16, 8 n] tile are float[n][4], with the lane's rows `group` and `group` + 8.
#pragma once

#include "core/cuda/kernels/attention.cuh"
#include "core/cuda/kernels/ptx.cuh"

namespace concertina::cuda {

inline constexpr int kOwnRows = 64;
inline constexpr unsigned kTileThreads = 128;
inline constexpr float kLog2e = 1.4426950408889634F, kLn2 = 0.6931471805599453F;

/// Number of elements from row to row: a row plus 16 bytes, so that 8 rows use different banks.
template <int kD>
inline constexpr int kRowPitch = kD + 8;

template <int kD>
constexpr std::size_t tile_bytes(int rows) {
  return sizeof(Bf16) * static_cast<std::size_t>(rows * kRowPitch<kD>);
}

/// Returns the row of the block's tile for index `i` (0 to 3) of this lane's sums; column_of()
/// returns the column in the n-th tile of 8.
__device__ inline int row_of(int i) {
  return static_cast<int>(threadIdx.x / 32 * 16 + threadIdx.x % 32 / 4) + i / 2 * 8;
}
__device__ inline int column_of(int n, int i) {
  return n * 8 + static_cast<int>(threadIdx.x % 4) * 2 + i % 2;
}

/// tile[kRows, kD] = rows [first, first + kRows) of a head; rows from `end` on are zero.
template <int kD, int kRows>
__device__ void load_rows(Bf16* tile, HeadRows<const Bf16> from, int first, int end,
                          const Heads& heads) {
  if (heads.vectors) {
    constexpr int kVectors = kD / 8;
#pragma unroll 4
    for (int i = static_cast<int>(threadIdx.x); i < kRows * kVectors; i += kTileThreads) {
      const int row = i / kVectors, column = i % kVectors * 8;
      uint4 x = make_uint4(0, 0, 0, 0);
      if (first + row < end && column < heads.d)
        x = *reinterpret_cast<const uint4*>(from.data + (first + row) * from.stride + column);
      *reinterpret_cast<uint4*>(tile + row * kRowPitch<kD> + column) = x;
    }
  } else {
    for (int i = static_cast<int>(threadIdx.x); i < kRows * kD; i += kTileThreads) {
      const int row = i / kD, column = i % kD;
      const bool there = first + row < end && column < heads.d;
      tile[row * kRowPitch<kD> + column] =
          there ? from.data[(first + row) * from.stride + column] : Bf16{0};
    }
  }
}

/// s[16, kOther] = the warp's rows of own[64, kD] times other[kOther, kD]^T.
template <int kD, int kOther>
__device__ void scores(const Bf16* own, const Bf16* other, float (&s)[kOther / 8][4]) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const Bf16* a_row =
      own + (static_cast<int>(threadIdx.x / 32) * 16 + lane % 16) * kRowPitch<kD> + lane / 16 * 8;
  const Bf16* b_row = other + (lane / 16 * 8 + lane % 8) * kRowPitch<kD> + lane / 8 % 2 * 8;
#pragma unroll
  for (int n = 0; n < kOther / 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; ++i) s[n][i] = 0;
#pragma unroll
  for (int k = 0; k < kD; k += 16) {
    std::uint32_t a[4], b[4];
    load_matrices(a, a_row + k);
#pragma unroll
    for (int n = 0; n < kOther; n += 16) {
      load_matrices(b, b_row + n * kRowPitch<kD> + k);
      mma(s[n / 8], a, b[0], b[1]);
      mma(s[n / 8 + 1], a, b[2], b[3]);
    }
  }
}

/// out[16, kD] += weights[16, kOther] (rounded to bf16) rows[kOther, kD]. Together, the weights in
/// two tiles of 8 columns have the layout of the left operand of a product over 16 rows.
template <int kD, int kOther>
__device__ void add_weighted(const float (&weights)[kOther / 8][4], const Bf16* rows,
                             float (&out)[kD / 8][4]) {
  const int lane = static_cast<int>(threadIdx.x % 32);
  const Bf16* b_row = rows + lane % 16 * kRowPitch<kD> + lane / 16 * 8;
#pragma unroll
  for (int k = 0; k < kOther; k += 16) {
    const float(&left)[4] = weights[k / 8], (&right)[4] = weights[k / 8 + 1];
    const std::uint32_t a[4] = {pack_bf16(left[0], left[1]), pack_bf16(left[2], left[3]),
                                pack_bf16(right[0], right[1]), pack_bf16(right[2], right[3])};
    std::uint32_t b[4];
#pragma unroll
    for (int n = 0; n < kD; n += 16) {
      load_matrices_transposed(b, b_row + k * kRowPitch<kD> + n);
      mma(out[n / 8], a, b[0], b[1]);
      mma(out[n / 8 + 1], a, b[2], b[3]);
    }
  }
}

/// Stores the sums, times a factor per row of the lane, to rows [first, first + 64) of a head.
template <int kD>
__device__ void store_rows(const float (&out)[kD / 8][4], float factor0, float factor1,
                           HeadRows<Bf16> to, int first, const Heads& heads) {
#pragma unroll
  for (int n = 0; n < kD / 8; ++n)
#pragma unroll
    for (int i = 0; i < 4; i += 2) {
      const int row = first + row_of(i), column = column_of(n, i);
      if (row >= heads.tokens || column >= heads.d) continue;
      const float factor = i == 0 ? factor0 : factor1;
      const std::uint32_t pair = pack_bf16(factor * out[n][i], factor * out[n][i + 1]);
      Bf16* at = to.data + row * to.stride + column;
      if (heads.vectors) {
        *reinterpret_cast<std::uint32_t*>(at) = pair;
      } else {
        at[0].bits = static_cast<std::uint16_t>(pair);
        if (column + 1 < heads.d) at[1].bits = static_cast<std::uint16_t>(pair >> 16);
      }
    }
}

/// Calls f.template operator()<kD>() with the smallest tile for heads of this dimension.
template <class F>
void with_head_dim(Int d, F&& f) {
  if (d <= 32)
    f.template operator()<32>();
  else if (d <= 64)
    f.template operator()<64>();
  else if (d <= 96)
    f.template operator()<96>();
  else
    f.template operator()<128>();
}

}  // namespace concertina::cuda
