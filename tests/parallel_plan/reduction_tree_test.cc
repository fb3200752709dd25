// The canonical reduction gives the same bits, however the leaves are divided between ranks.
#include "parallel/plan/reduction_tree.h"

#include <gtest/gtest.h>
#include <rapidcheck.h>

#include <bit>
#include <cmath>
#include <map>
#include <utility>

#include "core/error.h"

namespace concertina {
namespace {

using Sums = std::map<std::pair<int, int>, float>;

float tree_sum(TreeNode node, const std::vector<float>& leaves) {
  if (node.leaves() == 1) return leaves[node.first];
  const TreeSplit children = split(node);
  return tree_sum(children.left, leaves) + tree_sum(children.right, leaves);
}

void apply(const TreeMerge& merge, Sums& sums) {
  const auto left = sums.extract({merge.left.first, merge.left.last});
  const auto right = sums.extract({merge.right.first, merge.right.last});
  ASSERT_TRUE(left && right);
  sums[{merge.left.first, merge.right.last}] = left.mapped() + right.mapped();
}

/// Returns the sums of a rank after the leaves of `order`.
Sums run_rank(const std::vector<int>& order, const std::vector<float>& values) {
  Sums sums;
  std::vector<TreeNode> nodes;
  for (const int leaf : order) {
    sums[{leaf, leaf + 1}] = values[leaf];
    nodes.push_back({leaf, leaf + 1});
    for (const TreeMerge& merge : merges(nodes, static_cast<int>(values.size())))
      apply(merge, sums);
  }
  return sums;
}

std::vector<int> random_order(int first, int last) {
  std::vector<int> order;
  for (int leaf = first; leaf < last; ++leaf)
    order.insert(order.begin() + *rc::gen::inRange(0, leaf - first + 1), leaf);
  return order;
}

TEST(ReductionTree, AnySplitOverRanksGivesTheSameBits) {
  EXPECT_TRUE(rc::check([] {
    const int leaves = *rc::gen::inRange(1, 34);
    std::vector<float> values;
    for (int leaf = 0; leaf < leaves; ++leaf)
      values.push_back(static_cast<float>(*rc::gen::inRange(-1000000, 1000000)) *
                       std::exp2(static_cast<float>(*rc::gen::inRange(-20, 20))));
    Sums all;
    std::vector<TreeNode> nodes;
    for (int first = 0; first < leaves;) {  // one rank's leaves
      const int last = first + *rc::gen::inRange(1, leaves - first + 1);
      const Sums mine = run_rank(random_order(first, last), values);
      std::vector<TreeNode> expected;
      for (int leaf = first; leaf < last; ++leaf) expected.push_back({leaf, leaf + 1});
      merges(expected, leaves);
      RC_ASSERT(mine.size() == expected.size());
      for (const TreeNode& node : expected) RC_ASSERT(mine.contains({node.first, node.last}));
      all.insert(mine.begin(), mine.end());
      nodes.insert(nodes.begin(), expected.rbegin(), expected.rend());
      if (*rc::gen::arbitrary<bool>())  // a rank has these parts already, and adds them
        for (const TreeMerge& merge : merges(nodes, leaves)) apply(merge, all);
      first = last;
    }
    for (const TreeMerge& merge : merges(nodes, leaves)) apply(merge, all);
    RC_ASSERT(nodes == std::vector<TreeNode>{TreeNode(0, leaves)});
    RC_ASSERT(all.size() == 1u);
    RC_ASSERT(std::bit_cast<unsigned>(all[std::pair(0, leaves)]) ==
              std::bit_cast<unsigned>(tree_sum({0, leaves}, values)));
  }));
}

TEST(ReductionTree, SplitsAtTheLargestPowerOfTwo) {
  EXPECT_EQ(split({0, 2}).left, (TreeNode{0, 1}));
  EXPECT_EQ(split({0, 8}).left, (TreeNode{0, 4}));
  EXPECT_EQ(split({4, 7}).left, (TreeNode{4, 6}));
  EXPECT_EQ(split({8, 17}).right, (TreeNode{16, 17}));
  EXPECT_THROW(split({3, 4}), Error);
}

std::vector<TreeNode> merged(std::vector<TreeNode> nodes, int leaves) {
  merges(nodes, leaves);
  return nodes;
}

TEST(ReductionTree, LeavesFewNodes) {
  EXPECT_EQ(merged({{0, 4}, {4, 8}}, 8), (std::vector<TreeNode>{{0, 8}}));
  EXPECT_EQ(merged({{6, 7}, {1, 2}, {2, 3}, {3, 4}, {4, 6}}, 8),
            (std::vector<TreeNode>{{1, 2}, {2, 4}, {4, 6}, {6, 7}}));
  EXPECT_EQ(merged({{4, 6}, {6, 7}}, 7), (std::vector<TreeNode>{{4, 7}}));
  EXPECT_TRUE(merged({}, 4).empty());
}

TEST(ReductionTree, RefusesNodesThatOverlapOrAreNone) {
  for (const std::vector<TreeNode>& nodes : std::vector<std::vector<TreeNode>>{
           {{0, 2}, {0, 2}, {2, 4}}, {{0, 1}, {1, 3}, {3, 4}}, {{0, 5}}, {{4, 5}}})
    EXPECT_THROW(merged(nodes, 4), Error);
}

TEST(ReductionTree, DefaultLeavesDependOnMicrobatchesAlone) {
  const std::pair<int, int> cases[] = {{1, 1},   {2, 2},   {8, 8},   {12, 12}, {16, 16},
                                       {17, 1},  {24, 12}, {32, 16}, {34, 2},  {48, 16},
                                       {60, 15}, {64, 16}, {512, 16}};
  for (const auto& [microbatches, leaves] : cases) EXPECT_EQ(default_leaves(microbatches), leaves);
}

}  // namespace
}  // namespace concertina
