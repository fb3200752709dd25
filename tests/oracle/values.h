// What the oracle's formulas (one header per group of kernels beside this) are written with.
// Invariant of all of them: plain loops straight from the formulas, all in double; nothing is
// fused, blocked or recomputed cleverly.
#pragma once

#include <cstdint>
#include <vector>

#include "core/backend.h"
#include "tests/assign.h"

namespace concertina::oracle {

using Index = std::int64_t;
using Values = std::vector<double>;

template <OperatorOp T>
void issue(const T& op) {
  op.run();
}

inline Index count_of(View view) {
  return static_cast<Index>(view.count);
}

inline Values values_of(View view) {
  const std::vector<float> values = to_floats(view);
  return {values.begin(), values.end()};
}

/// Stores `sum`, added to what is there if `accumulate`.
inline void put(double& to, double sum, bool accumulate) {
  to = accumulate ? to + sum : sum;
}

/// The values of a view, written back, rounded to its type, when this ends.
class Out : public Values {
 public:
  explicit Out(View view) : Values(values_of(view)), view_(view) {}
  Out(const Out&) = delete;
  Out& operator=(const Out&) = delete;
  ~Out() { concertina::assign(view_, {begin(), end()}); }

 private:
  View view_;
};

}  // namespace concertina::oracle
