// The matrix products of a training step by themselves: what the step could not be faster than.
// Invariant: the shapes and counts are those of a profile; the buffers are its own, and nothing is
// fused after a product. On a CPU each is measured twice, in our tiles and as one call of oneDNN:
// tiles that are too small would not be seen by themselves.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "core/arena.h"
#include "core/cpu/whole_product.h"
#include "core/profile_backend.h"

namespace concertina {

class ProductsAlone {
 public:
  /// `profile`: of `steps` steps. `backend`: of its own. `threads`: of oneDNN's products of whole
  /// matrices; 0: without them.
  ProductsAlone(const Profile& profile, std::unique_ptr<Backend> backend, double steps,
                int threads);

  /// Multiplications and additions of a step's products, as many as are really computed.
  double flops() const;
  /// Seconds that a step's products take now.
  struct Seconds {
    double best = 0;   // each by what is faster, one call of oneDNN (fp32) or our tiles
    double tiles = 0;  // by our tiles
  };
  /// By the least of a few runs of each. Attention's count at the best rate of any here: no shape
  /// of theirs could be faster by itself.
  Seconds measure();

 private:
  struct Case {
    LinearShape shape;
    std::unique_ptr<Linear> linear;
    std::unique_ptr<cpu::WholeProducts> whole;  // may be null
    std::array<double, 3> calls{};              // a step: forward, input gradient, weight gradient
    View in, dx, out, dy, weight, dw;
    void* packed = nullptr;
    std::size_t x() const { return static_cast<std::size_t>(shape.rows * shape.in); }
    std::size_t y() const { return static_cast<std::size_t>(shape.rows * shape.out); }
    std::size_t w() const { return static_cast<std::size_t>(shape.in * shape.out); }
    double flops() const { return 2.0 * static_cast<double>(x()) * static_cast<double>(shape.out); }
  };

  void attach(Case& one);

  std::unique_ptr<Backend> backend_;
  std::vector<Case> cases_;
  double attention_flops_ = 0;
  Arena arena_;
};

}  // namespace concertina
