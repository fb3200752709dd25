// Dropout at the end of a unit: on the embeddings, and on what a half-block adds to its skip
// connection (GPT-2's embd_pdrop and resid_pdrop). It is off in inference mode, so the output of a
// frozen unit depends only on its weights and the sample. Masks are not stored (core/dropout.h): I
// regenerates the mask and saves the masked gradient for W.
#pragma once

#include "models/units/unit.h"

namespace concertina {

class Dropout {
 public:
  Dropout(const UnitShape& shape, Backend& backend) : shape_(shape), backend_(backend) {}

  bool drops(const UnitIo& io) const { return shape_.dropout > 0 && io.training; }

  /// F with dropout: y = residual (may be empty) + drop(u). y may alias u.
  void forward(const UnitIo& io, View u, View residual, View y) const {
    backend_.run(ApplyDropout{.mask = mask(io), .u = u, .residual = residual, .y = y});
  }

  /// Returns the size of the slot in `grads` for the masked gradient [R,C]; 0 without dropout.
  static std::int64_t elements(const UnitShape& shape) {
    return shape.dropout > 0 ? shape.elements(1) : 0;
  }
  /// I: returns the masked gradient, computed from `dy` into its slot `place`, or `dy` itself if
  /// the slot is empty.
  View backward(const UnitIo& io, View dy, View place) const {
    if (!place.empty()) backend_.run(ApplyDropout{.mask = mask(io), .u = dy, .y = place});
    return gradient(dy, place);
  }
  /// W: returns the same gradient as backward().
  static View gradient(View dy, View place) { return place.empty() ? dy : place; }

 private:
  DropoutMask mask(const UnitIo& io) const {
    return {shape_.dropout, io.random, shape_.tokens * shape_.width};
  }

  UnitShape shape_;
  Backend& backend_;
};

}  // namespace concertina
