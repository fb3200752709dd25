#include "models/optimizers/newton_schulz.h"

#include <algorithm>

namespace concertina {
namespace {

constexpr float kLinear = 3.4445F, kCubic = -4.7750F, kQuintic = 2.0315F;
constexpr float kLeastNorm = 1e-7F;  // of a gradient that is not taken for zeros

std::size_t matrix_bytes(std::int64_t rows, std::int64_t columns) {
  return align_up(static_cast<std::size_t>(rows * columns) * sizeof(float));
}

}  // namespace

// A matrix that is wide is multiplied from the left by one of its rows' number, one that is tall
// from the right by one of its columns': neither is transposed.
NewtonSchulz::NewtonSchulz(Backend& backend, std::int64_t rows, std::int64_t columns)
    : backend_(backend),
      rows_(rows),
      columns_(columns),
      side_(backend.linear({.rows = rows, .in = least(), .out = columns})),
      square_(backend.linear({.rows = least(), .in = least(), .out = least()})) {}

double NewtonSchulz::flops(std::int64_t rows, std::int64_t columns, int iterations) {
  const auto m = static_cast<double>(rows), n = static_cast<double>(columns), k = std::min(m, n);
  return iterations * (4 * m * n * k + 2 * k * k * k);
}

std::size_t NewtonSchulz::scratch_bytes() const {
  return 2 * matrix_bytes(least(), least()) + matrix_bytes(rows_, columns_) +
         align_up(side_->packed_bytes()) + align_up(square_->packed_bytes());
}

void NewtonSchulz::attach(void* scratch) {
  auto* at = static_cast<std::byte*>(scratch);
  const auto take = [&](std::int64_t rows, std::int64_t columns) {
    const View view{at, static_cast<std::size_t>(rows * columns), DType::f32};
    at += matrix_bytes(rows, columns);
    return view;
  };
  gram_ = take(least(), least());
  polynomial_ = take(least(), least());
  next_ = take(rows_, columns_);
  side_packed_ = at;
  square_packed_ = at + align_up(side_->packed_bytes());
}

void NewtonSchulz::run(View x, int iterations) const {
  backend_.run(ScaleToUnit{.x = x, .least = kLeastNorm});
  for (int i = 0; i < iterations; ++i) iterate(x);
}

void NewtonSchulz::iterate(View x) const {
  const bool wide = rows_ <= columns_;
  if (wide) {
    backend_.run(PackWeights{.map = *side_, .weight = x, .packed = side_packed_});
    backend_.run(LinearInput{.map = *side_, .dy = x, .packed = side_packed_, .dx = gram_});
  } else {
    backend_.run(
        LinearWeight{.map = *side_, .x = x, .dy = x, .dweight = gram_, .accumulate = false});
  }
  backend_.run(PackWeights{.map = *square_, .weight = gram_, .packed = square_packed_});
  backend_.run(
      LinearForward{.map = *square_, .x = gram_, .packed = square_packed_, .y = polynomial_});
  backend_.run(Axpby{.a = kCubic, .x = gram_, .b = kQuintic, .y = polynomial_});
  if (!wide)
    backend_.run(PackWeights{.map = *side_, .weight = polynomial_, .packed = side_packed_});
  backend_.run(LinearForward{
      .map = *side_, .x = wide ? polynomial_ : x, .packed = side_packed_, .y = next_});
  backend_.run(Axpby{.a = 1, .x = next_, .b = kLinear, .y = x});
}

}  // namespace concertina
