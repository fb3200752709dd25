#include "parallel/plan/reduction_tree.h"

#include <algorithm>
#include <bit>
#include <utility>

#include "core/error.h"

namespace concertina {
namespace {

bool inside(TreeNode inner, TreeNode outer) {
  return inner.first >= outer.first && inner.last <= outer.last;
}

/// Visits `node` in post-order; `next` advances over the sorted nodes of `have`. Returns true if
/// they make up all of `node`; otherwise the remaining ones are appended to `left`.
bool merge_into(TreeNode node, const std::vector<TreeNode>& have, std::size_t& next,
                std::vector<TreeMerge>& order, std::vector<TreeNode>& left) {
  if (next == have.size() || have[next].first >= node.last) return false;
  CONCERTINA_CHECK(inside(have[next], node), "leaves [{}, {}) overlap others or do not form a node",
                   have[next].first, have[next].last);
  if (have[next] == node) {
    ++next;
    return true;
  }
  const TreeSplit children = split(node);
  const bool first = merge_into(children.left, have, next, order, left);
  const bool second = merge_into(children.right, have, next, order, left);
  if (first && second) {
    order.push_back({children.left, children.right});
    return true;
  }
  if (first) left.push_back(children.left);
  if (second) left.push_back(children.right);
  return false;
}

}  // namespace

TreeSplit split(TreeNode node) {
  CONCERTINA_CHECK(node.leaves() > 1, "leaf {} has no children", node.first);
  const int left = static_cast<int>(std::bit_floor(static_cast<unsigned>(node.leaves() - 1)));
  return {{node.first, node.first + left}, {node.first + left, node.last}};
}

int default_leaves(int microbatches, int step) {
  CONCERTINA_CHECK(microbatches > 0 && microbatches % step == 0, "{} microbatches", microbatches);
  int leaves = std::min(microbatches, 16);
  while (microbatches % leaves != 0 || leaves % step != 0) --leaves;
  return leaves;
}

std::vector<TreeMerge> merges(std::vector<TreeNode>& nodes, int leaves) {
  std::sort(nodes.begin(), nodes.end());
  std::vector<TreeMerge> order;
  std::vector<TreeNode> left;
  std::size_t next = 0;
  const TreeNode root{0, leaves};
  if (merge_into(root, nodes, next, order, left)) left.push_back(root);
  CONCERTINA_CHECK(next == nodes.size(), "{} nodes overlap others", nodes.size() - next);
  std::sort(left.begin(), left.end());
  nodes = std::move(left);
  return order;
}

}  // namespace concertina
