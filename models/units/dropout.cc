#include "models/units/dropout.h"

namespace concertina {

void Dropout::forward(const UnitIo& io) const {
  if (drops(io)) backend_.dropout(mask(io), io.output, {}, io.output);
}

void Dropout::forward(const UnitIo& io, Linear& linear, View x, const void* packed,
                      View bias) const {
  if (!drops(io))
    return linear.forward(x, packed, bias, {Epilogue::Kind::residual, io.input}, io.output);
  linear.forward(x, packed, bias, {}, io.output);
  backend_.dropout(mask(io), io.output, io.input, io.output);
}

View Dropout::take(const UnitShape& shape, Carver& carver) {
  return shape.dropout > 0 ? carver.take(shape.rows() * shape.width, shape.compute) : View{};
}

View Dropout::backward(const UnitIo& io, View place) const {
  if (!place.empty()) backend_.dropout(mask(io), io.output_grad, {}, place);
  return gradient(io, place);
}

View Dropout::gradient(const UnitIo& io, View place) const {
  return place.empty() ? io.output_grad : place;
}

DropoutMask Dropout::mask(const UnitIo& io) const {
  return {shape_.dropout, io.random, shape_.tokens * shape_.width};
}

}  // namespace concertina
