#include "parallel/runtime/gradient_tree.h"

#include <algorithm>
#include <map>

#include "core/error.h"

namespace concertina {
namespace {

/// Hands out the lowest free number.
class Numbers {
 public:
  int take() {
    const auto free = std::find(used_.begin(), used_.end(), false);
    if (free == used_.end()) {
      used_.push_back(true);
      return static_cast<int>(used_.size()) - 1;
    }
    *free = true;
    return static_cast<int>(free - used_.begin());
  }
  void give(int number) { used_[static_cast<std::size_t>(number)] = false; }
  int most() const { return static_cast<int>(used_.size()); }

 private:
  std::vector<bool> used_;
};

}  // namespace

GradientTree::GradientTree(const std::vector<int>& order, int microbatches, int leaves) {
  const int run = microbatches / leaves;
  if (!order.empty()) {
    const auto [lowest, highest] = std::ranges::minmax(order);
    first_ = lowest;
    steps_.resize(static_cast<std::size_t>(highest - lowest + 1));
  }
  Numbers numbers;
  std::map<int, int> missing;               // leaf under way -> microbatches to come
  std::map<std::pair<int, int>, int> held;  // node -> buffer
  std::vector<bool> done(static_cast<std::size_t>(leaves), false);
  for (const int microbatch : order) {
    const int leaf = microbatch / run;
    Step& step = steps_[static_cast<std::size_t>(microbatch - first_)];
    CONCERTINA_CHECK(step.buffer < 0, "microbatch {} has two gradients", microbatch);
    const auto [at, fresh] = missing.try_emplace(leaf, run);
    if (fresh) held[{leaf, leaf + 1}] = numbers.take();
    step.buffer = held.at({leaf, leaf + 1});
    step.accumulate = !fresh;
    step.last = microbatch == order.back();
    if (--at->second > 0) continue;
    done[static_cast<std::size_t>(leaf)] = true;
    for (const TreeMerge& merge : merges_after(leaf, done)) {
      const int left = held.at({merge.left.first, merge.left.last});
      const int right = held.at({merge.right.first, merge.right.last});
      step.additions.push_back({left, right});
      held.erase({merge.left.first, merge.left.last});
      held.erase({merge.right.first, merge.right.last});
      held[{merge.left.first, merge.right.last}] = left;
      numbers.give(right);
    }
  }
  for (const auto& [leaf, count] : missing)
    CONCERTINA_CHECK(count == 0, "leaf {} lacks {} microbatches on this rank", leaf, count);
  for (const auto& [node, buffer] : held) {
    nodes_.push_back({node.first, node.second});
    node_buffers_.push_back(buffer);
  }
  buffers_ = numbers.most();
}

GradientTarget GradientTree::begin(int microbatch) const {
  const Step& now = step(microbatch);
  return {memory_[static_cast<std::size_t>(now.buffer)], now.accumulate};
}

bool GradientTree::end(int microbatch, Backend& backend) const {
  const Step& now = step(microbatch);
  for (const Addition& add : now.additions)
    backend.run(Axpby{1.0F, memory_[static_cast<std::size_t>(add.right)], 1.0F,
                      memory_[static_cast<std::size_t>(add.left)]});
  return now.last;
}

}  // namespace concertina
