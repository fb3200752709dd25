// The orthogonal matrix that is nearest, about, by Newton and Schulz's iteration.
#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <vector>

#include "core/backend.h"

namespace concertina {

/// X <- a X + (b A + c A^2) X with A = X X^T, some times, which drives the singular values of X to
/// between 0.7 and 1.2 (Jordan 2024, "Muon", with its quintic's coefficients). Products are fp32
/// ones of the backend; an iteration of [m,n] with k = min(m, n) has 4 m n k + 2 k^3 operations.
class NewtonSchulz {
 public:
  /// Makes operators for [rows,columns]. What passes through is that large.
  NewtonSchulz(Backend& backend, std::int64_t rows, std::int64_t columns);

  bool is_for(std::int64_t rows, std::int64_t columns) const {
    return rows == rows_ && columns == columns_;
  }
  /// Operations of `iterations` of them on a matrix of these extents.
  static double flops(std::int64_t rows, std::int64_t columns, int iterations);
  std::size_t scratch_bytes() const;
  void attach(void* scratch);
  /// x[rows,columns] <- what the iteration makes of x / |x|. Must not allocate.
  void run(View x, int iterations) const;

 private:
  void iterate(View x) const;
  std::int64_t least() const { return std::min(rows_, columns_); }

  Backend& backend_;
  std::int64_t rows_, columns_;
  std::unique_ptr<Linear> side_, square_;  // by X, or a matrix of its smaller side; among these
  View gram_, polynomial_, next_;
  void *side_packed_ = nullptr, *square_packed_ = nullptr;
};

}  // namespace concertina
