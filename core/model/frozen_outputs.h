// A cache of frozen units' outputs, which avoids recomputing them.
// Invariants: restored outputs are bit-identical to computed ones. Only training uses the cache,
// and only in the first stage.
#pragma once

#include "core/model/stage.h"

namespace concertina {

class FrozenOutputs {
 public:
  virtual ~FrozenOutputs() = default;
  /// Called before the first unit of an F of `stage`, with the arguments of forward_unit(). Returns
  /// n if units [0, n), all frozen, need not run because the output of the last one was restored to
  /// stage.frozen_output(n - 1, io). Returns 0 if all must run; that output is then unspecified.
  virtual int restore(const Stage& stage, const MicrobatchIo& io) = 0;
  /// Returns n if the output of unit n - 1 must be passed to keep() whenever that unit has run, or
  /// 0 if no output is kept.
  virtual int kept_units() const = 0;
  virtual void keep(const MicrobatchIo& io, View output) = 0;
};

}  // namespace concertina
