// Dropout at the end of a unit: of the embeddings, and of what a half-block adds to its skip
// (GPT-2's embd_pdrop and resid_pdrop). None where nothing trains, so a unit that is frozen puts
// out what follows from its weights and the sample alone. No mask is kept (core/dropout.h): I makes
// it again, and leaves what it lets through to W.
#pragma once

#include "models/units/unit.h"

namespace concertina {

class Dropout {
 public:
  Dropout(const UnitShape& shape, Backend& backend) : shape_(shape), backend_(backend) {}

  bool drops(const UnitIo& io) const { return shape_.dropout > 0 && io.training; }

  /// F, where it drops: y = residual (may be empty) + drop(u). y may be u.
  void forward(const UnitIo& io, View u, View residual, View y) const {
    backend_.run(ApplyDropout{.mask = mask(io), .u = u, .residual = residual, .y = y});
  }

  /// Elements of a unit's slot in its `grads` for the gradient [R,C] of what was dropped: none
  /// without dropout.
  static std::int64_t elements(const UnitShape& shape) {
    return shape.dropout > 0 ? shape.elements(1) : 0;
  }
  /// I: that gradient, of `dy` before it was dropped; in `place`, that slot, or where there is none
  /// just `dy`.
  View backward(const UnitIo& io, View dy, View place) const {
    if (!place.empty()) backend_.run(ApplyDropout{.mask = mask(io), .u = dy, .y = place});
    return gradient(dy, place);
  }
  /// W: the same, from what backward() left.
  static View gradient(View dy, View place) { return place.empty() ? dy : place; }

 private:
  DropoutMask mask(const UnitIo& io) const {
    return {shape_.dropout, io.random, shape_.tokens * shape_.width};
  }

  UnitShape shape_;
  Backend& backend_;
};

}  // namespace concertina
