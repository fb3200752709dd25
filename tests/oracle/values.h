// The basis of the oracle's formulas (one header per group of kernels in this folder).
// Invariant of all of them: plain loops taken directly from the formulas, all in double; nothing is
// fused, blocked or optimized.
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

/// Stores `sum`, or adds it if `accumulate`.
inline void put(double& to, double sum, bool accumulate) {
  to = accumulate ? to + sum : sum;
}

/// The values of a view, which the destructor rounds to the view's type and writes back.
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
