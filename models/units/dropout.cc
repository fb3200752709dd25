#include "models/units/dropout.h"

namespace concertina {

void Dropout::forward(const UnitIo& io) const {
  if (drops(io)) backend_.run(ApplyDropout{.mask = mask(io), .u = io.output, .y = io.output});
}

void Dropout::forward(const UnitIo& io, Linear& linear, View x, const void* packed,
                      View bias) const {
  if (!drops(io))
    return backend_.run(LinearForward{.map = linear,
                                      .x = x,
                                      .packed = packed,
                                      .bias = bias,
                                      .epilogue = {Epilogue::Kind::residual, io.input},
                                      .y = io.output});
  backend_.run(
      LinearForward{.map = linear, .x = x, .packed = packed, .bias = bias, .y = io.output});
  backend_.run(
      ApplyDropout{.mask = mask(io), .u = io.output, .residual = io.input, .y = io.output});
}

View Dropout::backward(const UnitIo& io, View place) const {
  if (!place.empty()) backend_.run(ApplyDropout{.mask = mask(io), .u = io.output_grad, .y = place});
  return gradient(io, place);
}

View Dropout::gradient(const UnitIo& io, View place) const {
  return place.empty() ? io.output_grad : place;
}

DropoutMask Dropout::mask(const UnitIo& io) const {
  return {shape_.dropout, io.random, shape_.tokens * shape_.width};
}

}  // namespace concertina
