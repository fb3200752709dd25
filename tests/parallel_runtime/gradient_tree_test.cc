// Sums of one use on one rank: the canonical tree's bits for any order, in the promised number of
// buffers.
#include "parallel/runtime/gradient_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <bit>
#include <map>
#include <numeric>
#include <random>

#include "core/error.h"
#include "tests/buffer.h"
#include "tests/parallel_runtime/canonical.h"
#include "tests/parallel_runtime/test_stage.h"

namespace concertina {
namespace {

constexpr std::size_t kElements = 3;

struct Case {
  int microbatches = 1, leaves = 1;
  std::vector<int> order;  // of microbatches, ascending within a leaf
};

Case random_case(std::mt19937& random) {
  const auto pick = [&](int low, int high) {
    return std::uniform_int_distribution<int>(low, high)(random);
  };
  Case one;
  one.leaves = pick(1, 11);
  const int run = pick(1, 4);
  one.microbatches = one.leaves * run;
  std::vector<int> mine(static_cast<std::size_t>(one.leaves));
  std::iota(mine.begin(), mine.end(), 0);
  std::shuffle(mine.begin(), mine.end(), random);
  mine.resize(static_cast<std::size_t>(pick(1, one.leaves)));
  for (const int leaf : mine)
    one.order.insert(one.order.end(), static_cast<std::size_t>(run), leaf);
  if (pick(0, 1) == 1) std::shuffle(one.order.begin(), one.order.end(), random);
  std::map<int, int> next;
  for (int& at : one.order) {
    const int leaf = at;
    at = leaf * run + next[leaf]++;
  }
  return one;
}

/// Adds the largest nodes below `node` whose leaves are all done, in ascending order.
void complete_nodes(TreeNode node, const std::vector<bool>& done, std::vector<TreeNode>& nodes) {
  const auto leaf = [&](int i) { return done[i]; };
  bool all = true;
  for (int i = node.first; i < node.last; ++i) all = all && leaf(i);
  if (all) return nodes.push_back(node);
  if (node.leaves() == 1) return;
  complete_nodes(split(node).left, done, nodes);
  complete_nodes(split(node).right, done, nodes);
}

/// Returns the number of sums that exist at once: of complete nodes before the microbatch's
/// additions, and of unfinished leaves.
int buffers_needed(const Case& one) {
  const int run = one.microbatches / one.leaves;
  std::vector<bool> done(static_cast<std::size_t>(one.leaves), false);
  std::map<int, int> under_way;
  int most = 0;
  for (const int m : one.order) {
    ++under_way[m / run];
    std::vector<TreeNode> nodes;
    complete_nodes({0, one.leaves}, done, nodes);
    most = std::max(most, static_cast<int>(nodes.size() + under_way.size()));
    if (under_way[m / run] < run) continue;
    under_way.erase(m / run);
    done[m / run] = true;
  }
  return most;
}

void expect_canonical(const Case& one, Backend& backend) {
  GradientTree tree(one.order, one.microbatches, one.leaves);
  std::vector<Buffer> memory;
  std::vector<View> views;
  for (int i = 0; i < tree.buffers(); ++i) views.push_back(memory.emplace_back(kElements).view());
  tree.attach(views);
  for (int step = 0; step < 2; ++step) {  // the second uses what the first left
    for (const int m : one.order) {
      give(tree.begin(m), 0, kElements, [&](std::size_t e) { return gradient_value(0, 0, m, e); });
      EXPECT_EQ(tree.end(m, backend), m == one.order.back());
    }
    const int run = one.microbatches / one.leaves;
    std::vector<bool> done(static_cast<std::size_t>(one.leaves), false);
    for (const int m : one.order) done[m / run] = true;
    std::vector<TreeNode> expected;
    complete_nodes({0, one.leaves}, done, expected);
    ASSERT_EQ(tree.nodes(), expected);
    for (std::size_t n = 0; n < expected.size(); ++n)
      for (std::size_t e = 0; e < kElements; ++e)
        ASSERT_EQ(tree.node_memory(n).f32()[e],
                  node_sum(0, 0, e, expected[n].first, expected[n].last, run));
  }
}

TEST(GradientTree, AddsInTheCanonicalOrderInAsFewBuffersAsItAllows) {
  std::mt19937 random(1);
  const auto backend = make_cpu_backend(1);
  for (int i = 0; i < 400; ++i) {
    SCOPED_TRACE("case " + std::to_string(i));
    const Case one = random_case(random);
    ASSERT_NO_FATAL_FAILURE(expect_canonical(one, *backend));
    const GradientTree tree(one.order, one.microbatches, one.leaves);
    ASSERT_EQ(tree.buffers(), buffers_needed(one));
  }
}

TEST(GradientTree, BuffersInAscendingOrderAreLogarithmic) {
  for (int leaves = 1; leaves <= 70; ++leaves) {
    std::vector<int> ascending(static_cast<std::size_t>(leaves));
    std::iota(ascending.begin(), ascending.end(), 0);
    EXPECT_EQ(GradientTree(ascending, leaves, leaves).buffers(),
              static_cast<int>(std::bit_width(static_cast<unsigned>(leaves))));
  }
}

TEST(GradientTree, TheOrderOfAdditionsMatters) {
  float forward = 0, backward = 0;
  int different = 0;
  for (std::size_t e = 0; e < 64; ++e, forward = backward = 0) {
    for (int m = 0; m < 16; ++m) {
      forward += gradient_value(0, 0, m, e);
      backward += gradient_value(0, 0, 15 - m, e);
    }
    different += forward != backward ? 1 : 0;
  }
  EXPECT_GT(different, 16);  // otherwise the tests above could not fail
}

TEST(GradientTree, RefusesALeafThatIsNotWhole) {
  EXPECT_ANY_THROW(GradientTree({0, 1, 2}, 8, 4));
  EXPECT_ANY_THROW(GradientTree({0, 0}, 8, 4));
}

}  // namespace
}  // namespace concertina
