// Dropout at the end of a unit: of the embeddings, and of what a half-block adds to its skip
// (GPT-2's embd_pdrop and resid_pdrop). None where nothing trains, so a unit that is frozen puts
// out what follows from its weights and the sample alone. No mask is kept (core/dropout.h): I makes
// it again, and leaves what it lets through to W.
#pragma once

#include "models/unit.h"

namespace concertina {

class Dropout {
 public:
  Dropout(const UnitShape& shape, Backend& backend) : shape_(shape), backend_(backend) {}

  bool drops(const UnitIo& io) const { return shape_.dropout > 0 && io.training; }

  /// F of a unit without a skip: output = drop(output).
  void forward(const UnitIo& io) const;
  /// F of a half-block: output = input + drop(x W + bias).
  void forward(const UnitIo& io, Linear& linear, View x, const void* packed, View bias) const;

  /// Of a unit's slot in its `grads` for the gradient [R,C] of what was dropped: none without
  /// dropout.
  static std::int64_t elements(const UnitShape& shape) {
    return shape.dropout > 0 ? shape.elements(1) : 0;
  }
  /// I: that gradient; in `place`, that slot, or where there is none just output_grad.
  View backward(const UnitIo& io, View place) const;
  /// W: the same, from what backward() left.
  View gradient(const UnitIo& io, View place) const;

 private:
  DropoutMask mask(const UnitIo& io) const;

  UnitShape shape_;
  Backend& backend_;
};

}  // namespace concertina
