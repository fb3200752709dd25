// Rotary position embedding (Su et al. 2021) in place: a thread has N pairs of one head of one row.
//
// Legend: R rows, T tokens a sample, H heads that turn, D columns of a head; N elements an access.
#include "core/rotary.h"

#include <algorithm>
#include <numeric>

#include "core/cuda/kernels/kernels.h"
#include "core/cuda/kernels/launch.cuh"
#include "core/cuda/kernels/vector.cuh"

namespace concertina::cuda {
namespace {

constexpr unsigned kRotaryThreads = 256;
constexpr Int kMostPairs = 256;  // of one launch

/// From the host, so that every backend has the same angles: one rounded product each.
struct Frequencies {
  double of[kMostPairs];
};

/// Writes the sines and cosines of pairs [first, first + pairs).
__global__ void __launch_bounds__(kRotaryThreads)
    fill_rotary_table(Frequencies frequencies, float* table, Int tokens, Int half, Int first,
                      Int pairs) {
  const Int at = static_cast<Int>(blockIdx.x) * kRotaryThreads + threadIdx.x;
  if (at >= tokens * pairs) return;
  const Int t = at / pairs, i = at % pairs;
  const double angle = static_cast<double>(t) * frequencies.of[i];
  float* to = table + t * 2 * half + first + i;
  to[0] = static_cast<float>(cos(angle));
  to[half] = static_cast<float>(sin(angle));
}

template <class T, int N>
__global__ void __launch_bounds__(kRotaryThreads)
    rotate_pairs(T* x, const float* table, Int rows, Int stride, Int heads, Int half, Int tokens,
                 float sign) {
  const Int at = (static_cast<Int>(blockIdx.x) * kRotaryThreads + threadIdx.x) * N;
  if (at >= rows * heads * half) return;
  const Int i = at % half, head = at / half % heads, row = at / half / heads;
  T *low = x + row * stride + head * 2 * half + i, *high = low + half;
  const float* angles = table + row % tokens * 2 * half + i;
  float a[N], b[N], cosine[N], sine[N];
  load(low, a);
  load(high, b);
  load(angles, cosine);
  load(angles + half, sine);
#pragma unroll
  for (int k = 0; k < N; ++k) {
    const float s = sign * sine[k], turned = a[k] * cosine[k] - b[k] * s;
    b[k] = b[k] * cosine[k] + a[k] * s;
    a[k] = turned;
  }
  store(low, a);
  store(high, b);
}

}  // namespace

void run(cudaStream_t stream, const RotaryTable& op, void* /*scratch*/) {
  const Int half = op.head_dim / 2;
  for (Int first = 0; first < half; first += kMostPairs) {
    const Int pairs = std::min(kMostPairs, half - first);
    Frequencies frequencies{};
    for (Int i = 0; i < pairs; ++i)
      frequencies.of[i] = rotary_frequency(op.theta, op.head_dim, first + i);
    launch("rotary table", {dim3(blocks_for(op.tokens * pairs, kRotaryThreads)), kRotaryThreads},
           stream, fill_rotary_table, frequencies, op.table.f32(), op.tokens, half, first, pairs);
  }
}

void run(cudaStream_t stream, const Rotate& op, void* /*scratch*/) {
  const Int half = op.head_dim / 2, rows = static_cast<Int>(op.x.count) / op.stride;
  with_access(op.x.dtype, std::gcd(op.stride, half), {op.x, op.table}, [&]<class T, int N>() {
    launch("rotary embedding",
           {dim3(blocks_for(rows * op.heads * half, Int{kRotaryThreads} * N)), kRotaryThreads},
           stream, rotate_pairs<T, N>, op.x.as<T>(), op.table.f32(), rows, op.stride, op.heads,
           half, op.tokens, op.inverse ? -1.0F : 1.0F);
  });
}

}  // namespace concertina::cuda
