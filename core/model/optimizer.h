// The interface of update rules.
// Invariants: elementwise updates give the same bits for any partition of the weights over ranks.
// Whole-tensor updates run on the rank that owns the tensor, in an order determined by its shape.
// All state is in fp32 tensors with the shape of the weights, initially zero.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <span>
#include <string_view>
#include <vector>

#include "core/backend.h"
#include "core/model/model_spec.h"

namespace concertina {

/// Maximum number of state tensors of an optimizer.
inline constexpr std::size_t kMostStates = 4;

struct UpdateStep {
  std::int64_t step = 1;  // number of this update of the tensor, from 1
  double lr = 0;
  float grad_scale = 1;  // for clipping: multiplies the gradient first
};

/// What a rule needs on one rank besides weights, state and gradients: operators and scratch.
class UpdateTools {
 public:
  virtual ~UpdateTools() = default;
  /// Returns the scratch size of update(), whose content is not preserved between calls.
  virtual std::size_t scratch_bytes() const = 0;
  virtual void attach(void* scratch) = 0;
};

/// A tensor or, unless the rule needs whole tensors, any contiguous part of one.
struct UpdatedTensor {
  View w{};
  std::span<const View> states{};  // in the order of state_names(), sized like w
  View g{};                        // the gradient; update() may overwrite it
  bool decay = false;              // whether weight decay applies
  // For rules that need whole tensors.
  const BucketTensor* tensor = nullptr;
  UpdateTools* tools = nullptr;  // created by the rule
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Returns the names of the state tensors in a checkpoint, such as "m" and "v". At most
  /// kMostStates.
  virtual std::vector<std::string_view> state_names() const = 0;
  /// Whether update() needs whole tensors. Owners then divide a bucket by tensors.
  virtual bool whole_tensors() const { return false; }
  /// Returns the number of floating-point operations in the products of update() for this whole
  /// tensor, excluding elementwise work.
  virtual double update_flops(const ParameterSpec& /*parameter*/) const { return 0; }
  /// Creates the tools that update() needs for one rank's `tensors`; null if none are needed. Must
  /// be called before the backend's workspace is set.
  virtual std::unique_ptr<UpdateTools> tools(
      Backend& /*backend*/, std::span<const BucketTensor* const> /*tensors*/) const {
    return nullptr;
  }
  /// Performs one step. Must not allocate.
  virtual void update(Backend& backend, const UpdateStep& step,
                      const UpdatedTensor& tensor) const = 0;
};

/// Returns the factor of global-norm clipping (Pascanu et al. 2013), min(1, clip / (norm + 1e-6)).
/// clip <= 0 disables clipping.
inline float clip_scale(double norm, double clip) {
  return clip <= 0 ? 1.0F : static_cast<float>(std::min(1.0, clip / (norm + 1e-6)));
}

}  // namespace concertina
