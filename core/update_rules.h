// What every element of one update by SGD, Lion or LAMB has in common.
#pragma once

#include "core/adamw.h"

namespace concertina {

/// SGD with momentum (Sutskever et al. 2013) as torch.optim.SGD: d = scale g + decay w;
/// m = momentum m + fresh d; w -= lr (d + momentum m) with Nesterov's momentum, else lr m.
struct SgdRule {
  float lr = 0, momentum = 0;
  float fresh = 1;  // 1 - dampening, and 1 at the first step
  float decay = 0;
  float grad_scale = 1;  // clipping: the gradient is multiplied by this first
  bool nesterov = false;
};

/// Lion (Chen et al. 2023, algorithm 2): w -= lr (sign(beta1 m + (1 - beta1) scale g) + decay w);
/// then m = beta2 m + (1 - beta2) scale g.
struct LionRule {
  float lr = 0, beta1 = 0.9F, beta2 = 0.99F, decay = 0, grad_scale = 1;
};

/// LAMB (You et al. 2020, algorithm 2): m and v as Adam's, corrected for their start;
/// u = m / (sqrt(v) + eps) + weight_decay w; w -= lr (|w| / |u|) u over a whole tensor. The ratio
/// is 1 where a norm is 0, and for a tensor that does not `adapt`.
struct LambRule {
  AdamW moments;
  bool adapt = true;

  /// The constants of the direction u: its rate is 1, that of the step comes after it.
  AdamWConstants constants() const {
    AdamW unit = moments;
    unit.lr = 1;
    return constants_of(unit);
  }
};

}  // namespace concertina
