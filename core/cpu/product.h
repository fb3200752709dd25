// One single-threaded matrix product of fixed shape by oneDNN, run by many threads at once.
// Invariant: its blocking is chosen as for one thread, so its bits never depend on the team.
#pragma once

#include <memory>
#include <oneapi/dnnl/dnnl.hpp>
#include <vector>

#include "core/cpu/team.h"

namespace concertina::cpu {

dnnl::engine& engine();

/// C[m,n] = (accumulate ? C : 0) + A[m,k] B[k,n].
struct ProductShape {
  std::int64_t m = 0, k = 0, n = 0;
  std::int64_t a_row = 0, a_column = 0;  // strides of A in elements
  std::int64_t b_row = 0, b_column = 0;  // of B; 0, 0: the product chooses (packed)
  std::int64_t c_row = 0;
  bool accumulate = false;
};

class Product {
 public:
  /// `packed`: use this layout of B instead of the shape's (a tail shares its tile's packing).
  Product(const ProductShape& shape, Workspace& workspace, int threads,
          const dnnl::memory::desc* packed = nullptr);
  const dnnl::memory::desc& b_desc() const { return b_desc_; }
  void run(int thread, const float* a, const void* b, float* c);

 private:
  struct Arguments {
    dnnl::memory a, b, c, scratch;
    dnnl::stream stream;
  };
  dnnl::matmul primitive_;
  dnnl::memory::desc b_desc_;
  std::vector<Arguments> threads_;
  const Workspace* workspace_;
};

}  // namespace concertina::cpu
