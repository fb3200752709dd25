// What the .cu files offer: one function a kernel, on a stream, as core/backend.h defines it.
// Invariant: sums over rows have one fixed order, a function of the sizes alone; no atomics.
#pragma once

#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstdint>

#include "core/backend.h"
#include "core/cuda/format.h"
#include "core/cuda/sizes.h"

namespace concertina::cuda {

void layer_norm(cudaStream_t stream, View x, View gamma, View beta, View y, View mean, View rstd);
void layer_norm_backward_input(cudaStream_t stream, View dy, View x, View gamma, View mean,
                               View rstd, View residual_grad, View dx);
void layer_norm_backward_weight(cudaStream_t stream, View dy, View x, View mean, View rstd,
                                View dgamma, View dbeta, bool accumulate, void* scratch);
/// sums[C] = (accumulate ? old : 0) + column sums of x[R,C]: a bias gradient.
void column_sums(cudaStream_t stream, View x, View sums, bool accumulate, void* scratch);

void embedding(cudaStream_t stream, View tokens, View wte, View wpe, std::int64_t t, View x);
void embedding_backward(cudaStream_t stream, View tokens, View dx, std::int64_t t, View dwte,
                        View dwpe, bool accumulate, void* scratch);

void cross_entropy(cudaStream_t stream, View logits, View targets, float loss_scale, bool training,
                   View row_loss);

/// `place`: on the device, in place of the mask's own step and sample; or null.
void dropout(cudaStream_t stream, const DropoutMask& mask, const MaskPlace* place, View u,
             View residual, View y);
/// *to = place.
void place_masks(cudaStream_t stream, MaskPlace place, MaskPlace* to);

void axpby(cudaStream_t stream, float a, View x, float b, View y);
/// sums: host memory that the device may write, one fp64 for each run of `block` elements.
void sum_squares(cudaStream_t stream, View x, std::size_t block, double* sums);
void adamw(cudaStream_t stream, const AdamW& rule, View w, View m, View v, View g);

/// y = x (fp32), rounded to y's type.
void cast(cudaStream_t stream, View x, View y);

/// Where a tensor x[R,C] goes in fp8: as it lies, transposed [C,R], or both; null: not wanted.
struct Quantized {
  void *straight, *flipped;
  float* scale;  // on the device: times this, the elements are those of x
};
/// R and C are multiples of 16, and all pointers. `format`: e4m3 or e5m2. kMaximumBytes of scratch.
void quantize(cudaStream_t stream, View x, std::int64_t columns, Format format, const Quantized& to,
              void* scratch);

/// y[R,C] += bias[C].
void add_bias(cudaStream_t stream, View bias, View y);
/// y = gelu(u).
void gelu(cudaStream_t stream, View u, View y);
/// dx *= gelu'(u).
void gelu_backward(cudaStream_t stream, View u, View dx);

/// The passes of attention. delta[samples,H,T]: row sums of dy * y, which both gradients need.
void attention_forward(cudaStream_t stream, const AttentionShape& shape, View qkv, View y,
                       View lse);
void attention_delta(cudaStream_t stream, const AttentionShape& shape, View dy, View y, View delta);
void attention_backward(cudaStream_t stream, const AttentionShape& shape, View dy, View qkv,
                        View lse, View delta, View dqkv);

}  // namespace concertina::cuda
