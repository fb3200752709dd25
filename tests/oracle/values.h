// What the oracle's formulas (one header per group of kernels beside this) are written with.
// Invariant of all of them: plain loops straight from the formulas with sums in double; nothing is
// fused, blocked or recomputed cleverly. T is float (OracleBackend) or double (finite differences).
#pragma once

#include <cstdint>
#include <vector>

#include "core/backend.h"
#include "tests/assign.h"

namespace concertina::oracle {

using Index = std::int64_t;

template <OperatorOp T>
void issue(const T& op) {
  op.run();
}

inline Index rows_of(View per_row) {
  return static_cast<Index>(per_row.count);
}

/// Stores `sum`, added to what is there if `accumulate`.
template <class T>
void put(T& to, double sum, bool accumulate) {
  to = static_cast<T>(accumulate ? static_cast<double>(to) + sum : sum);
}

/// The values of a view, written back, rounded to its type, when this ends.
class Out {
 public:
  explicit Out(View view) : view_(view), values_(to_floats(view)) {}
  Out(const Out&) = delete;
  Out& operator=(const Out&) = delete;
  ~Out() { assign(view_, values_); }
  float* data() { return values_.data(); }
  float& operator[](std::size_t i) { return values_[i]; }

 private:
  View view_;
  std::vector<float> values_;
};

}  // namespace concertina::oracle
