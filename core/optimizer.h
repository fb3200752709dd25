// How weights move. Invariant: an update is elementwise, so that any cut of the weights over ranks
// gives the same bits; all state is in fp32 tensors of the weights' shape, which start at zero.
#pragma once

#include <cstdint>
#include <span>
#include <string_view>
#include <vector>

#include "core/backend.h"

namespace concertina {

/// The most state tensors that an optimizer may keep.
inline constexpr std::size_t kMostStates = 4;

struct UpdateStep {
  std::int64_t step = 1;  // of the updates so far, from 1
  double lr = 0;
  float grad_scale = 1;  // clipping: the gradient is multiplied by this first
};

class Optimizer {
 public:
  virtual ~Optimizer() = default;
  /// Names of the state tensors, e.g. "m", "v": what a checkpoint keeps beside the weights. At most
  /// kMostStates.
  virtual std::vector<std::string_view> state_names() const = 0;
  /// One step on w with gradient g and state views in the order of state_names(), equal counts.
  /// `decay`: weight decay applies to this tensor. Must not allocate.
  virtual void update(Backend& backend, const UpdateStep& step, bool decay, View w,
                      std::span<const View> states, View g) const = 0;
};

/// Global-norm clipping (Pascanu et al. 2013): the factor min(1, clip / (norm + 1e-6)) for a
/// gradient of this norm; clip <= 0 means none.
float clip_scale(double norm, double clip);

}  // namespace concertina
