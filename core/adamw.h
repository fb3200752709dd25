// AdamW: decoupled weight decay (Loshchilov & Hutter 2019, algorithm 2).
#pragma once

#include <cstdint>

namespace concertina {

/// `step` counts from 1.
struct AdamW {
  float lr = 0, beta1 = 0.9F, beta2 = 0.999F, eps = 1e-8F, weight_decay = 0;
  float grad_scale = 1;  // clipping: the gradient is multiplied by this first
  std::int64_t step = 1;
};

/// What every element of one update has in common.
struct AdamWConstants {
  float lr, beta1, beta2, eps, decay;          // decay = lr * weight_decay
  float grad_scale, correction1, correction2;  // 1/(1-beta1^t), 1/sqrt(1-beta2^t)
};
AdamWConstants constants_of(const AdamW& update);

}  // namespace concertina
