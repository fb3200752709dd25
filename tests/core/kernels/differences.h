// The oracle's gradients against central finite differences of its own forward, all in double.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <random>
#include <vector>

#include "tests/buffer.h"
#include "tests/oracle/values.h"

namespace concertina::oracle {

using Values = std::vector<double>;

inline constexpr double kTolerance = 1e-8;

inline Values draw(Index count) {
  static std::mt19937 engine(11);
  std::normal_distribution<double> normal;
  Values values(static_cast<std::size_t>(count));
  for (double& value : values) value = normal(engine);
  return values;
}

inline double dot(const Values& a, const Values& b) {
  double sum = 0;
  for (std::size_t i = 0; i < a.size(); ++i) sum += a[i] * b[i];
  return sum;
}

/// d loss / d x by central differences; x is as before when it returns.
inline Values differences(Values& x, const std::function<double()>& loss) {
  constexpr double kStep = 1e-5;
  Values grad;
  for (double& value : x) {
    const double kept = value;
    value = kept + kStep;
    const double up = loss();
    value = kept - kStep;
    const double down = loss();
    value = kept;
    grad.push_back((up - down) / (2 * kStep));
  }
  return grad;
}

}  // namespace concertina::oracle
