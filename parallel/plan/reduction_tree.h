// The canonical order in which gradients are summed over microbatches.
// One fixed binary tree over S leaves, each of M/S microbatches accumulated in ascending order.
// Invariant: the tree depends only on S, so the sum is bit-identical for any distribution of the
// leaves over ranks.
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

/// Children of a node with at least two leaves: the left one's number of leaves is the largest
/// power of two below the node's.
struct TreeSplit {
  TreeNode left, right;
};
TreeSplit split(TreeNode node);

/// The default of `numerics.leaves`: the largest divisor of `microbatches` that is at most 16. It
/// depends only on the microbatches, so a config gives bit-identical results at every world size.
/// With `step`, a divisor of `microbatches`, only multiples of `step` are considered.
int default_leaves(int microbatches, int step = 1);

/// sum(left) += sum(right); the result represents both.
struct TreeMerge {
  TreeNode left, right;
  bool operator==(const TreeMerge&) const = default;
};

/// Returns the additions, in order, that `nodes` of the tree over `leaves` leaves allow. Nodes must
/// be disjoint. `nodes` becomes the remaining nodes, ascending: the root if no leaf is missing.
std::vector<TreeMerge> merges(std::vector<TreeNode>& nodes, int leaves);

}  // namespace concertina
