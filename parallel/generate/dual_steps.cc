#include "parallel/generate/dual_steps.h"

#include <array>

#include "core/error.h"

namespace concertina {
namespace {

class Steps {
 public:
  void forward(int side) { passes_.push_back({Kind::F, side, forwards_[side]++}); }
  void backward(int side) { passes_.push_back({Kind::B, side, backwards_[side]++}); }
  /// Runs I now and defers its W.
  void input(int side) {
    passes_.push_back({Kind::I, side, backwards_[side]});
    weights_.push_back({Kind::W, side, backwards_[side]++});
  }
  void weight() { passes_.push_back(weights_[weight_++]); }
  std::vector<DualPass> result() && { return std::move(passes_); }

 private:
  std::vector<DualPass> passes_, weights_;
  std::array<int, 2> forwards_{}, backwards_{};
  std::size_t weight_ = 0;  // index of the next pass in weights_
};

}  // namespace

std::vector<DualPass> dual_steps(int depth, int from_end, int microbatches) {
  CONCERTINA_CHECK(microbatches >= 2 * depth, "{} microbatches for depth {}", microbatches, depth);
  const int near = from_end + 1, far = depth - near;
  Steps steps;
  for (int i = 0; i < 2 * far; ++i) steps.forward(0);
  for (int i = 0; i < near; ++i) steps.forward(0), steps.forward(1);
  for (int i = 0; i < far; ++i) steps.input(1), steps.weight(), steps.forward(1);
  for (int i = 0; i < microbatches - 2 * depth + near; ++i) {  // steady state: F together with B
    steps.forward(0), steps.backward(1);
    steps.forward(1), steps.backward(0);
  }
  for (int i = 0; i < far; ++i) steps.backward(1), steps.forward(1), steps.backward(0);
  for (int i = 0; i < 2 * near; ++i) {  // the second half defers its weight gradients
    const int side = i % 2 == 0 ? 1 : 0;
    i < near ? steps.backward(side) : steps.input(side);
  }
  for (int i = 0; i < far; ++i) steps.weight(), steps.input(0);
  for (int i = 0; i < near; ++i) steps.weight();
  return std::move(steps).result();
}

}  // namespace concertina
