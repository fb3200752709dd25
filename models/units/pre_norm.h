// The layer norm that a unit begins with: h = norm(input), its gradients, and its two parameters,
// which are the unit's first ones.
#pragma once

#include <span>
#include <vector>

#include "models/unit.h"

namespace concertina {

class PreNorm {
 public:
  enum Parameter { kWeight, kBias, kParameters };
  /// What F leaves: h[R,C], mean[R], rstd[R].
  struct Kept {
    View h, mean, rstd;
  };

  explicit PreNorm(Backend& backend) : backend_(backend) {}

  static std::vector<ParameterSpec> parameters(std::int64_t width);
  /// `weights`: of the unit.
  void attach(std::span<const View> weights) { gamma_ = weights[kWeight], beta_ = weights[kBias]; }

  void forward(const UnitIo& io, const Kept& kept) const;
  /// I: input_grad = `skip_grad` (may be empty) + what `dh` says of the input, where it is wanted.
  void backward_input(const UnitIo& io, const Kept& kept, View dh, View skip_grad) const;
  /// W: `gradients` of the unit.
  void backward_weight(const UnitIo& io, const Kept& kept, View dh,
                       std::span<const UnitGradient> gradients) const;

 private:
  Backend& backend_;
  View gamma_, beta_;
};

}  // namespace concertina
