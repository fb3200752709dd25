#include "parallel/plan/reduction_tree.h"

#include <algorithm>
#include <bit>

#include "core/error.h"

namespace concertina {
namespace {

bool inside(TreeNode inner, TreeNode outer) {
  return inner.first >= outer.first && inner.last <= outer.last;
}

void decompose_into(TreeNode node, TreeNode range, std::vector<TreeNode>& nodes) {
  if (node.last <= range.first || node.first >= range.last) return;
  if (inside(node, range)) {
    nodes.push_back(node);
    return;
  }
  const TreeSplit children = split(node);
  decompose_into(children.left, range, nodes);
  decompose_into(children.right, range, nodes);
}

/// Post-order below `node`; `next` walks over the sorted nodes that are there already.
void merge_into(TreeNode node, const std::vector<TreeNode>& have, std::size_t& next,
                std::vector<TreeMerge>& order) {
  CONCERTINA_CHECK(next < have.size() && have[next].first == node.first && inside(have[next], node),
                   "no holder has the leaves from {} on inside [{}, {})", node.first, node.first,
                   node.last);
  if (have[next] == node) {
    ++next;
    return;
  }
  const TreeSplit children = split(node);
  merge_into(children.left, have, next, order);
  merge_into(children.right, have, next, order);
  order.push_back({children.left, children.right});
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

std::vector<TreeNode> decompose(TreeNode range, int leaves) {
  CONCERTINA_CHECK(range.first >= 0 && range.first < range.last && range.last <= leaves,
                   "leaves [{}, {}) of {}", range.first, range.last, leaves);
  std::vector<TreeNode> nodes;
  decompose_into({0, leaves}, range, nodes);
  return nodes;
}

std::vector<TreeMerge> merges(const std::vector<TreeNode>& nodes, int leaves) {
  std::vector<TreeNode> have = nodes;
  std::sort(have.begin(), have.end(), [](TreeNode a, TreeNode b) { return a.first < b.first; });
  std::vector<TreeMerge> order;
  std::size_t next = 0;
  merge_into({0, leaves}, have, next, order);
  CONCERTINA_CHECK(next == have.size(), "{} nodes overlap others", have.size() - next);
  return order;
}

std::vector<TreeMerge> merges_after(int leaf, const std::vector<bool>& done) {
  std::vector<TreeMerge> path;  // splits from the root down to the leaf
  for (TreeNode node{0, static_cast<int>(done.size())}; node.leaves() > 1;) {
    const TreeSplit children = split(node);
    path.push_back({children.left, children.right});
    node = leaf < children.left.last ? children.left : children.right;
  }
  const auto complete = [&](const TreeMerge& merge) {
    return std::all_of(done.begin() + merge.left.first, done.begin() + merge.right.last,
                       [](bool leaf_done) { return leaf_done; });
  };
  std::reverse(path.begin(), path.end());
  path.erase(std::find_if_not(path.begin(), path.end(), complete), path.end());
  return path;
}

int peak_buffers(const std::vector<int>& completion_order, int leaves) {
  std::vector<bool> done(leaves, false);
  int live = 0, peak = 0;
  for (const int leaf : completion_order) {
    CONCERTINA_CHECK(leaf >= 0 && leaf < leaves && !done[leaf],
                     "leaf {} of {} is finished twice or does not exist", leaf, leaves);
    done[leaf] = true;
    peak = std::max(peak, ++live);
    live -= static_cast<int>(merges_after(leaf, done).size());
  }
  return peak;
}

}  // namespace concertina
