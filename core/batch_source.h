// Where samples come from. Invariant: what a step holds is a pure function of (seed, step).
#pragma once

#include <cstdint>

#include "core/tensor.h"

namespace concertina {

class BatchSource {
 public:
  virtual ~BatchSource() = default;
  /// Writes samples [first, first + count) of `step`'s global batch: tokens[count*T],
  /// targets[count*T] (int32; -1: scored by nobody). Either view may be empty.
  virtual void load(std::int64_t step, std::int64_t first, std::int64_t count, View tokens,
                    View targets) = 0;
  /// Targets of samples [0, samples) of `step` that are not -1. Every rank asks for the global
  /// batch before it loads its own part: a loss is a mean over these.
  virtual std::int64_t valid_targets(std::int64_t step, std::int64_t samples) const = 0;
  virtual std::int64_t tokens_per_sample() const = 0;
};

}  // namespace concertina
