// How weights move. Invariants: an update of elements gives the same bits for any cut of the
// weights over ranks; one of whole tensors is done by the one rank that owns the tensor, in an
// order that follows from its shape; all state is in fp32 tensors of the weights' shape, which
// start at zero.
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

/// The most state tensors that an optimizer may keep.
inline constexpr std::size_t kMostStates = 4;

struct UpdateStep {
  std::int64_t step = 1;  // of the tensor's updates so far, from 1
  double lr = 0;
  float grad_scale = 1;  // clipping: the gradient is multiplied by this first
};

/// Operators and scratch that a rule needs on one rank beside weights, state and gradients.
class UpdateTools {
 public:
  virtual ~UpdateTools() = default;
  /// Scratch for update(); its content does not outlive the call.
  virtual std::size_t scratch_bytes() const = 0;
  virtual void attach(void* scratch) = 0;
};

/// A tensor, or, unless the rule wants whole ones, any run of one.
struct UpdatedTensor {
  View w{};
  std::span<const View> states{};  // in the order of state_names(), counts as w
  View g{};                        // the gradient; what it is afterwards is the rule's choice
  bool decay = false;              // weight decay applies
  // For rules that want whole tensors.
  const BucketTensor* tensor = nullptr;
  UpdateTools* tools = nullptr;  // that the rule made
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Names of the state tensors, e.g. "m", "v": what a checkpoint keeps beside the weights. At most
  /// kMostStates.
  virtual std::vector<std::string_view> state_names() const = 0;
  /// Whether update() must see whole tensors: owners then share a bucket tensor by tensor.
  virtual bool whole_tensors() const { return false; }
  /// Floating-point operations of the products in update() of this whole tensor, beside what it
  /// does with each element.
  virtual double update_flops(const ParameterSpec& /*parameter*/) const { return 0; }
  /// Makes the tools that update() needs for `tensors`, those of one rank; null: none are needed.
  /// To be called before the backend's workspace is set.
  virtual std::unique_ptr<UpdateTools> tools(
      Backend& /*backend*/, std::span<const BucketTensor* const> /*tensors*/) const {
    return nullptr;
  }
  /// One step. Must not allocate.
  virtual void update(Backend& backend, const UpdateStep& step,
                      const UpdatedTensor& tensor) const = 0;
};

/// Global-norm clipping (Pascanu et al. 2013): the factor min(1, clip / (norm + 1e-6)) for a
/// gradient of this norm; clip <= 0 means none.
inline float clip_scale(double norm, double clip) {
  return clip <= 0 ? 1.0F : static_cast<float>(std::min(1.0, clip / (norm + 1e-6)));
}

}  // namespace concertina
