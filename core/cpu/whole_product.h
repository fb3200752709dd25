// The three products of one linear map in fp32 as single calls of oneDNN, by threads of its own:
// what a bench holds our tiles against. Nothing that trains uses it.
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

/// Null for other types than fp32. The weights are of its own, packed as oneDNN likes them.
std::unique_ptr<WholeProducts> make_whole_products(const LinearShape& shape, int threads);

}  // namespace concertina::cpu
