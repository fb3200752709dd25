#include "parallel/runtime/gradient_tree.h"

#include <algorithm>
#include <map>
#include <set>

#include "core/error.h"

namespace concertina {

GradientTree::GradientTree(const std::vector<int>& order, int microbatches, int leaves) {
  const int run = microbatches / leaves;
  if (!order.empty()) {
    const auto [lowest, highest] = std::ranges::minmax(order);
    first_ = lowest;
    steps_.resize(static_cast<std::size_t>(highest - lowest + 1));
  }
  std::set<int> free;  // buffers; the lowest is used next
  const auto take = [&] { return free.empty() ? buffers_++ : free.extract(free.begin()).value(); };
  std::map<int, int> missing;    // incomplete leaf -> remaining microbatches
  std::map<TreeNode, int> held;  // node -> buffer
  for (const int microbatch : order) {
    const int leaf = microbatch / run;
    const TreeNode node{leaf, leaf + 1};
    Step& step = steps_[static_cast<std::size_t>(microbatch - first_)];
    CONCERTINA_CHECK(step.buffer < 0, "microbatch {} has two gradients", microbatch);
    const auto [at, fresh] = missing.try_emplace(leaf, run);
    if (fresh) held[node] = take();
    step.buffer = held.at(node);
    step.accumulate = !fresh;
    step.last = microbatch == order.back();
    if (--at->second > 0) continue;
    nodes_.push_back(node);
    for (const TreeMerge& merge : merges(nodes_, leaves)) {
      const int left = held.extract(merge.left).mapped();
      const int right = held.extract(merge.right).mapped();
      step.additions.push_back({left, right});
      held[{merge.left.first, merge.right.last}] = left;
      free.insert(right);
    }
  }
  for (const auto& [leaf, count] : missing)
    CONCERTINA_CHECK(count == 0, "leaf {} lacks {} microbatches on this rank", leaf, count);
  for (const TreeNode& node : nodes_) node_buffers_.push_back(held.at(node));
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
