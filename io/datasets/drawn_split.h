// Random assignment of the items of a labelled dataset to training, validation and test.
// Invariants: pure; items with equal content are in the same split; the result depends on the
// contents and labels of all items, but not on their order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "io/datasets/dataset.h"

namespace concertina {

/// What an item's split depends on: a hash of the item's content, equal for items that must not be
/// separated, and its class.
struct ItemKey {
  std::uint64_t content = 0;
  std::int32_t label = 0;
  std::uint64_t exact = 0;  // hash of the whole item, including its label unless that is a class
  std::uint64_t bytes = 0;  // of its text, if every token of the text is a target
};

/// Shares of the items to hold out; their sum is less than 1.
struct SplitShares {
  double validation = 0, test = 0;
};

/// Returns the split of each item. Groups with equal content are assigned in pseudo-random order
/// (Philox with `seed`) to validation and test until these have their share of each class, to
/// within one item if all groups are single items; totals over all classes are rounded down. Each
/// split gets at least one group of each class that has two or more groups (three if both are held
/// out). A group with several labels belongs to the class with the lowest label.
std::vector<Split> draw_split(std::span<const ItemKey> items, const SplitShares& shares,
                              std::uint64_t seed);

}  // namespace concertina
