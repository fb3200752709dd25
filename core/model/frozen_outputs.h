// Outputs of frozen units that were kept before, in place of computing them again.
// Invariants: what is restored has the bits that the units would make now; asked only by training,
// and only of the stage that begins the model.
#pragma once

#include "core/model/stage.h"

namespace concertina {

class FrozenOutputs {
 public:
  virtual ~FrozenOutputs() = default;
  /// Before the first unit of an F of `stage`, with what forward_unit() would get. Returns n: units
  /// [0, n), all frozen, need not run, and the output of the last of them is where
  /// stage.frozen_output(n - 1, io) says. 0: all have to run; the content of these places then
  /// means nothing.
  virtual int restore(const Stage& stage, const MicrobatchIo& io) = 0;
  /// The output of unit kept_units() - 1 is to be given to keep(), whenever that unit has run; 0:
  /// nothing is.
  virtual int kept_units() const = 0;
  virtual void keep(const MicrobatchIo& io, View output) = 0;
};

}  // namespace concertina
