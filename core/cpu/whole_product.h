// The three products of one fp32 linear map as single, multithreaded oneDNN calls: the benchmark
// baseline for our tiles. Not used in training.
#pragma once

#include <memory>

#include "core/backend.h"

namespace concertina::cpu {

class WholeProducts {
 public:
  virtual ~WholeProducts() = default;
  virtual void forward(View x, View y) = 0;                         // y = x W
  virtual void backward_input(View dy, View dx) = 0;                // dx = dy W^T
  virtual void backward_weight(View x, View dy, View dweight) = 0;  // dweight += x^T dy
};

/// Returns null for types other than fp32. The weights are private, in oneDNN's packed layout.
std::unique_ptr<WholeProducts> make_whole_products(const LinearShape& shape, int threads);

}  // namespace concertina::cpu
