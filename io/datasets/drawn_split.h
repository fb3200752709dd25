// Which part each item of a labelled set is drawn into: training, validation or test.
// Invariants: pure; items of equal content are in one part; the part of an item follows from the
// contents and labels of all items, not from their order.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "io/datasets/dataset.h"

namespace concertina {

/// What a split sees of an item: a hash of its content, equal for items that must not be on two
/// sides, and its class.
struct ItemKey {
  std::uint64_t content = 0;
  std::int32_t label = 0;
  std::uint64_t exact = 0;  // a hash of all that it holds, its label too unless that is a class
  std::uint64_t bytes = 0;  // of its text, where each token of that is a target
};

/// Shares of the items that are held out: together less than 1.
struct SplitShares {
  double validation = 0, test = 0;
};

/// The part of each item. Groups of equal content are taken in a pseudo-random order (of `seed`,
/// Philox) into validation and test until these have their shares of each class, exactly to one
/// item where groups are single items; together they have their shares of all, rounded down. Each
/// part has at least one group of a class with two or more (three for both parts). A group of
/// several labels counts as its lowest.
std::vector<Split> draw_split(std::span<const ItemKey> items, const SplitShares& shares,
                              std::uint64_t seed);

}  // namespace concertina
