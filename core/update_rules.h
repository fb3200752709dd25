// The constants of an AdamW, SGD, Lion or LAMB update, shared by all elements.
#pragma once

#include <cstdint>

namespace concertina {

/// AdamW: decoupled weight decay (Loshchilov & Hutter 2019, algorithm 2). `step` counts from 1.
struct AdamW {
  float lr = 0, beta1 = 0.9F, beta2 = 0.999F, eps = 1e-8F, weight_decay = 0;
  float grad_scale = 1;  // for clipping: multiplies the gradient first
  std::int64_t step = 1;
};

/// Constants derived for one update.
struct AdamWConstants {
  float lr, beta1, beta2, eps, decay;          // decay = lr * weight_decay
  float grad_scale, correction1, correction2;  // 1/(1-beta1^t), 1/sqrt(1-beta2^t)
};
AdamWConstants constants_of(const AdamW& update);

/// SGD with momentum (Sutskever et al. 2013), as in torch.optim.SGD: d = scale g + decay w; m =
/// momentum m + fresh d; w -= lr (d + momentum m) with Nesterov momentum, else lr m.
struct SgdRule {
  float lr = 0, momentum = 0;
  float fresh = 1;  // 1 - dampening, or 1 at the first step
  float decay = 0;
  float grad_scale = 1;  // for clipping: multiplies the gradient first
  bool nesterov = false;
};

/// Lion (Chen et al. 2023, algorithm 2): w -= lr (sign(beta1 m + (1 - beta1) scale g) + decay w);
/// then m = beta2 m + (1 - beta2) scale g.
struct LionRule {
  float lr = 0, beta1 = 0.9F, beta2 = 0.99F, decay = 0, grad_scale = 1;
};

/// LAMB (You et al. 2020, algorithm 2): m and v as in Adam, with bias correction; u = m / (sqrt(v)
/// + eps) + weight_decay w; w -= lr (|w| / |u|) u over a whole tensor. The ratio |w| / |u| is 1 if
/// a norm is 0 or `adapt` is false.
struct LambRule {
  AdamW moments;
  bool adapt = true;

  /// Returns the constants for the direction u, with lr = 1; the learning rate is applied later.
  AdamWConstants constants() const {
    AdamW unit = moments;
    unit.lr = 1;
    return constants_of(unit);
  }
};

}  // namespace concertina
