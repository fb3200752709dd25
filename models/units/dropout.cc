#include "models/units/dropout.h"

namespace concertina {

void Dropout::forward(const UnitIo& io, View u, View residual, View y) const {
  backend_.run(ApplyDropout{.mask = mask(io), .u = u, .residual = residual, .y = y});
}

View Dropout::backward(const UnitIo& io, View dy, View place) const {
  if (!place.empty()) backend_.run(ApplyDropout{.mask = mask(io), .u = dy, .y = place});
  return gradient(dy, place);
}

DropoutMask Dropout::mask(const UnitIo& io) const {
  return {shape_.dropout, io.random, shape_.tokens * shape_.width};
}

}  // namespace concertina
