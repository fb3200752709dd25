// Dropout: the words of core/dropout.h from Random123, made where they are used.
//
// A block takes a run of one sample's elements, a thread N of them: 16 bytes where every sample
// starts at a multiple of that, and a counter for each 4.
#include <Random123/philox.h>

#include "core/cuda/kernels/kernels.h"
#include "core/cuda/kernels/launch.cuh"
#include "core/cuda/kernels/vector.cuh"

namespace concertina::cuda {
namespace {

constexpr unsigned kDropThreads = 256;
constexpr Int kMostBlocks = 65535;  // of the second dimension of a grid

struct Rule {
  std::uint32_t key0, key1, step, sample, unit, threshold;
  float scale;
};

/// Those of N elements from e, a multiple of N, of one sample.
template <int N>
__device__ void random_words(const Rule& rule, std::uint32_t sample, Int e,
                             std::uint32_t (&words)[N]) {
  const r123::Philox4x32::key_type key{{rule.key0, rule.key1}};
  const auto four = [&](Int counter) {
    const r123::Philox4x32::ctr_type at{
        {rule.step, sample, rule.unit, static_cast<std::uint32_t>(counter)}};
    return r123::Philox4x32()(at, key);
  };
  if constexpr (N == 1) {
    words[0] = four(e / 4)[e % 4];
  } else {
#pragma unroll
    for (int i = 0; i < N; i += 4) {
      const auto next = four((e + i) / 4);
#pragma unroll
      for (int k = 0; k < 4; ++k) words[i + k] = next[k];
    }
  }
}

template <class T, int N>
__global__ void __launch_bounds__(kDropThreads)
    drop(Rule rule, const MaskPlace* place, const T* u, const T* residual, T* y, Int samples,
         Int sample_elements) {
  const Int e = (static_cast<Int>(blockIdx.x) * kDropThreads + threadIdx.x) * N;
  if (e >= sample_elements) return;
  if (place != nullptr) rule.step = place->step, rule.sample = place->sample;
  for (Int s = blockIdx.y; s < samples; s += gridDim.y) {
    const Int i = s * sample_elements + e;
    std::uint32_t words[N];
    float v[N], skip[N] = {};
    random_words(rule, rule.sample + static_cast<std::uint32_t>(s), e, words);
    load(u + i, v);
    if (residual != nullptr) load(residual + i, skip);
#pragma unroll
    for (int k = 0; k < N; ++k)
      v[k] = skip[k] + (words[k] < rule.threshold ? 0 : v[k] * rule.scale);
    store(y + i, v);
  }
}

__global__ void write_place(MaskPlace place, MaskPlace* to) {
  if (threadIdx.x == 0) *to = place;
}

}  // namespace

void place_masks(cudaStream_t stream, MaskPlace place, MaskPlace* to) {
  launch("place of masks", {dim3(1), 32}, stream, write_place, place, to);
}

void run(cudaStream_t stream, const ApplyDropout& op, const MaskPlace* place) {
  const auto key = Rng(op.mask.at.seed, Purpose::dropout).key();
  const Rule rule{key[0],          key[1],
                  op.mask.at.step, op.mask.at.sample,
                  op.mask.at.unit, op.mask.threshold(),
                  op.mask.scale()};
  const Int elements = op.mask.sample_elements, samples = static_cast<Int>(op.u.count) / elements;
  with_access(op.u.dtype, elements, {op.u, op.residual, op.y}, [&]<class T, int N>() {
    const dim3 blocks(blocks_for(elements, Int{kDropThreads} * N),
                      static_cast<unsigned>(std::min(samples, kMostBlocks)));
    launch("dropout", {blocks, kDropThreads}, stream, drop<T, N>, rule, place, op.u.as<T>(),
           op.residual.as<T>(), op.y.as<T>(), samples, elements);
  });
}

}  // namespace concertina::cuda
