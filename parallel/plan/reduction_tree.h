// The canonical order in which gradients are summed over microbatches.
// S leaves, each a run of M/S microbatches that is accumulated in ascending order; above them one
// fixed binary tree. Invariant: the tree depends on S alone, so any split of the leaves over ranks
// yields the same bits.
#pragma once

#include <compare>
#include <vector>

namespace concertina {

/// Leaves [first, last). The root is [0, S).
struct TreeNode {
  int first = 0, last = 0;
  int leaves() const { return last - first; }
  auto operator<=>(const TreeNode&) const = default;
};

/// Children of a node of two leaves or more: the left one has the largest power of two of leaves
/// that is smaller than the node's.
struct TreeSplit {
  TreeNode left, right;
};
TreeSplit split(TreeNode node);

/// Leaves that a run has unless `numerics.leaves` says otherwise: the largest divisor of
/// `microbatches` that is at most 16. Of the microbatches alone, so one config gives the same bits
/// at every world size. `step`: of those that it divides; it divides `microbatches`.
int default_leaves(int microbatches, int step = 1);

/// sum(left) += sum(right); the result stands for both.
struct TreeMerge {
  TreeNode left, right;
  bool operator==(const TreeMerge&) const = default;
};

/// Returns the additions, in order, that `nodes` of the tree over `leaves` leaves allow. They are
/// disjoint; `nodes` becomes what is left, ascending: the root, if they hold every leaf.
std::vector<TreeMerge> merges(std::vector<TreeNode>& nodes, int leaves);

}  // namespace concertina
