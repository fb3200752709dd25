// Sums the gradients of one use of one bucket on one rank in canonical order
// (parallel/plan/reduction_tree.h), with as few buffers as that order allows.
// Invariant: the order of additions is compiled from the plan before the first step; a step follows
// it without allocating.
#pragma once

#include <vector>

#include "core/backend.h"
#include "core/model/stage.h"
#include "parallel/plan/reduction_tree.h"

namespace concertina {

class GradientTree {
 public:
  /// `order` lists the step's microbatches whose gradient this rank computes, in order of
  /// execution; they form whole leaves. `microbatches` and `leaves` are the step's totals.
  GradientTree(const std::vector<int>& order, int microbatches, int leaves);

  int buffers() const { return buffers_; }
  /// Requires buffers() views of the bucket's size.
  void attach(std::vector<View> buffers) { memory_ = std::move(buffers); }

  GradientTarget begin(int microbatch) const;
  /// Performs the additions that this microbatch completes. Returns true after the last microbatch.
  bool end(int microbatch, Backend& backend) const;

  /// The nodes that remain at the end (maximal, ascending), and their buffers.
  const std::vector<TreeNode>& nodes() const { return nodes_; }
  View node_memory(std::size_t node) const {
    return memory_[static_cast<std::size_t>(node_buffers_[node])];
  }

 private:
  struct Addition {
    int left = 0, right = 0;  // buffers
  };
  struct Step {
    int buffer = -1;
    bool accumulate = false, last = false;
    std::vector<Addition> additions;
  };

  const Step& step(int microbatch) const {
    return steps_[static_cast<std::size_t>(microbatch - first_)];
  }

  int first_ = 0;            // the lowest microbatch in `order`
  std::vector<Step> steps_;  // by microbatch, from first_ to the highest one
  std::vector<TreeNode> nodes_;
  std::vector<int> node_buffers_;
  std::vector<View> memory_;
  int buffers_ = 0;
};

}  // namespace concertina
