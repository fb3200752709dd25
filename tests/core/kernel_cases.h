// Random calls of every kernel of core/backend.h. Invariant: a case is a pure function of its seed,
// so that it can be run on two backends and the results compared.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/backend.h"

namespace concertina {

/// One result of a case: what a backend wrote. Errors are relative to the largest value, or to
/// `scale` where the terms of a sum are larger than the sum.
struct Output {
  std::string name;
  std::vector<float> values;
  double scale = 0;
};

struct KernelCase {
  std::string name;      // kernel, sizes, precision
  double tolerance = 0;  // of the oracle's results: what the precision explains
  std::function<std::vector<Output>(Backend&)> run;
};

/// Fails the test where an output is further from the oracle's than the case allows.
void expect_close(const std::vector<Output>& got, const std::vector<Output>& expected,
                  const KernelCase& kernel);

/// `rounds` random cases of each kernel; of linear maps alone where only products differ.
std::vector<KernelCase> kernel_cases(unsigned seed, int rounds, const Precision& precision);

}  // namespace concertina
