// What cases of kernels are made of.
#pragma once

#include <algorithm>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "tests/buffer.h"
#include "tests/core/kernel_cases.h"

namespace concertina {

using Outputs = std::vector<Output>;

/// Poisoned scratch for the operators made so far.
class Workspace {
 public:
  explicit Workspace(Backend& backend) : memory_(buffer_of_bytes(backend.workspace_bytes())) {
    backend.set_workspace(memory_.data());
  }

 private:
  Buffer memory_;
};

inline void keep(Outputs& outputs, std::string name, const Buffer& buffer, double scale = 0) {
  outputs.push_back({std::move(name), buffer.values(), scale});
}

inline double largest(const Buffer& buffer) {
  double most = 0;
  for (const float value : buffer.values())
    most = std::max(most, std::abs(static_cast<double>(value)));
  return most;
}

inline std::int64_t odd_size(Data& data, std::int64_t most) {
  return data.pick<std::int64_t>({1, data.size(1, most), data.size(1, most), most});
}

inline double tolerance(DType compute) {
  return compute == DType::bf16 ? 1e-2 : 1e-5;
}

}  // namespace concertina
