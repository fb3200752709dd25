#include "core/update_rules.h"

#include <cmath>

namespace concertina {

AdamWConstants constants_of(const AdamW& update) {
  const auto left = [&](float beta) {
    return 1 - std::pow(static_cast<double>(beta), static_cast<double>(update.step));
  };
  return {update.lr,
          update.beta1,
          update.beta2,
          update.eps,
          update.lr * update.weight_decay,
          update.grad_scale,
          static_cast<float>(1 / left(update.beta1)),
          static_cast<float>(1 / std::sqrt(left(update.beta2)))};
}

}  // namespace concertina
