// The order of exchanges: in each step, a rank receives from one other; everything is delivered.
#include "core/model/exchange_order.h"

#include <gtest/gtest.h>

#include <set>

namespace concertina {
namespace {

TEST(ExchangeOrder, InEachStepEveryRankReceivesFromOne) {
  for (const int size : {2, 3, 5, 8})
    for (int from = 0; from < size; ++from) {
      std::set<int> steps;
      for (int to = 0; to < size; ++to)
        if (to != from) steps.insert(exchange_step(from, to, size));
      EXPECT_EQ(static_cast<int>(steps.size()), size - 1);
      EXPECT_EQ(*steps.begin(), 1);
      EXPECT_EQ(*steps.rbegin(), size - 1);
    }
}

TEST(ExchangeOrder, DoublingBringsEveryBlockToEveryRank) {
  for (int size = 1; size <= 40; ++size) {
    std::vector<std::set<int>> held(static_cast<std::size_t>(size));
    for (int rank = 0; rank < size; ++rank) held[rank] = {rank};
    int rounds = 0;
    for (; gather_round(rounds, size).blocks > 0; ++rounds) {
      const auto [distance, blocks] = gather_round(rounds, size);
      const std::vector<std::set<int>> before = held;
      for (int rank = 0; rank < size; ++rank)
        for (int i = 0; i < blocks; ++i) {
          const int from = (rank + distance) % size, block = (from + i) % size;
          EXPECT_TRUE(before[from].contains(block));
          EXPECT_TRUE(held[rank].insert(block).second) << "sent twice";
        }
    }
    for (const std::set<int>& blocks : held) EXPECT_EQ(static_cast<int>(blocks.size()), size);
    EXPECT_GE(1 << rounds, size);
    EXPECT_LT(size == 1 ? 0 : 1 << (rounds - 1), size);
  }
}

TEST(ExchangeOrder, BackwardEndsWithTheFirstUnits) {
  std::vector<Bucket> buckets(4);
  buckets[0].uses = {0};
  buckets[1].uses = {0, 3};
  buckets[2].uses = {2};
  buckets[3].uses = {3};
  EXPECT_EQ(exchange_order(buckets), (std::vector<std::size_t>{3, 2, 0, 1}));
}

TEST(ExchangeOrder, SomeStepsOrSomeBytesMayBeUnderWay) {
  EXPECT_TRUE(may_begin_step(0, 1e12));
  EXPECT_TRUE(may_begin_step(2, 1e12));
  EXPECT_FALSE(may_begin_step(3, 1e12));
  EXPECT_TRUE(may_begin_step(100, 1000));
}

}  // namespace
}  // namespace concertina
