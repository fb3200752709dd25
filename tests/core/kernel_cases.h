// Random calls of every kernel of core/backend.h. Invariant: a case is a pure function of its seed,
// so that it can be run on two backends and the results compared.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "core/backend.h"

namespace concertina {

/// One result of a case: what a backend wrote.
struct Output {
  std::string name;
  std::vector<float> values;
};

struct KernelCase {
  std::string name;  // kernel and sizes
  std::function<std::vector<Output>(Backend&)> run;
};

/// `rounds` random cases of each kernel.
std::vector<KernelCase> kernel_cases(unsigned seed, int rounds);

}  // namespace concertina
