// The functions of the .cu files: one per kernel, on a stream.
// Invariant: sums over rows have a fixed order that depends only on the sizes; no atomics.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>
#include <string_view>

#include "core/cuda/base/sizes.h"
#include "core/ops.h"

namespace concertina::cuda {

/// The operand formats of products. tf32 is stored as fp32. e4m3 and e5m2 are bytes with one scale
/// per tensor (Micikevicius et al. 2022, "FP8 Formats for Deep Learning").
enum class Format : std::uint8_t { f32, tf32, bf16, e4m3, e5m2 };

inline constexpr bool is_fp8(Format format) {
  return format == Format::e4m3 || format == Format::e5m2;
}
inline constexpr std::string_view name_of(Format format) {
  constexpr std::string_view kNames[] = {"fp32", "tf32", "bf16", "E4M3", "E5M2"};
  return kNames[static_cast<int>(format)];
}

// The kernels of core/ops.h that are not operators. `scratch` is kScratchBytes on the device, for
// kernels that need it. Kernels with other needs have separate functions below.
#define CONCERTINA_RUN(Kernel) void run(cudaStream_t stream, const Kernel& op, void* scratch);
CONCERTINA_KERNELS(CONCERTINA_RUN)
#undef CONCERTINA_RUN

/// `place` is on the device, and replaces the step and sample of the mask unless it is null.
void run(cudaStream_t stream, const ApplyDropout& op, const MaskPlace* place);
/// Writes the sums to `sums` (host memory that the device can write) instead of op.sums.
void run(cudaStream_t stream, const SumSquares& op, double* sums);

/// *to = place.
void place_masks(cudaStream_t stream, MaskPlace place, MaskPlace* to);

/// sums[C] = (accumulate ? old : 0) + column sums of x[R,C]: a bias gradient.
void column_sums(cudaStream_t stream, View x, View sums, bool accumulate, void* scratch);

/// y = x (fp32), rounded to y's type.
void cast(cudaStream_t stream, View x, View y);

/// Destinations of a tensor x[R,C] in fp8: as it is, transposed [C,R], or both; null: none.
struct Quantized {
  void *straight, *flipped;
  float* scale;  // on the device; the elements times this scale give x
};
/// R, C and pointers must be multiples of 16; `format` is e4m3 or e5m2; `scratch` is kMaximumBytes.
void quantize(cudaStream_t stream, View x, std::int64_t columns, Format format, const Quantized& to,
              void* scratch);

/// y[R,C] += bias[C].
void add_bias(cudaStream_t stream, View bias, View y);
/// y = f(u), where f is the activation `kind`.
void activate(cudaStream_t stream, Epilogue::Kind kind, View u, View y);
/// dx = dy f'(u); dx may alias dy.
void activate_backward(cudaStream_t stream, Epilogue::Kind kind, View dy, View u, View dx);

/// The passes of attention, with `place` as for ApplyDropout. delta[samples,H,T] are the row sums
/// of dy * y, which both gradients need.
void attention_forward(cudaStream_t stream, const AttentionShape& shape, const AttentionForward& op,
                       const MaskPlace* place);
/// The forward pass with a cache.
void cached_attention(cudaStream_t stream, const AttentionShape& shape, const AttentionForward& op);
void attention_delta(cudaStream_t stream, const AttentionShape& shape, View dy, View y, View delta);
void attention_backward(cudaStream_t stream, const AttentionShape& shape,
                        const AttentionBackward& op, View delta, const MaskPlace* place);

}  // namespace concertina::cuda
