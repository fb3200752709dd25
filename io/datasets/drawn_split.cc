#include "io/datasets/drawn_split.h"

#include <algorithm>
#include <array>
#include <limits>

#include "core/error.h"
#include "core/rng.h"

namespace concertina {
namespace {

constexpr std::size_t kParts = 2;  // held-out splits: validation, test
constexpr std::size_t kNone = std::numeric_limits<std::size_t>::max();

/// An item in the order of assignment; items with equal content are adjacent.
struct OrderedItem {
  std::uint64_t order, content;
  std::size_t item;
  auto operator<=>(const OrderedItem&) const = default;
};

/// Items with equal content: [first, first + count) in the order of assignment.
struct ContentGroup {
  std::size_t first, count;
  std::size_t label;
  Split part = Split::train;
};

struct ClassShare {
  std::uint64_t items = 0, groups = 0;
  std::array<std::uint64_t, kParts> wanted{}, taken{};  // items
  std::uint64_t groups_left = 0;                        // for training
};

std::vector<OrderedItem> ordered_items(std::span<const ItemKey> items, std::uint64_t seed) {
  const Rng rng(seed, Purpose::split);
  std::vector<OrderedItem> ordered;
  ordered.reserve(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::uint64_t content = items[i].content;
    const auto words = rng.words(static_cast<std::uint32_t>(content),
                                 static_cast<std::uint32_t>(content >> 32), 0, 0);
    ordered.push_back({std::uint64_t{words[0]} << 32 | words[1], content, i});
  }
  std::ranges::sort(ordered);
  return ordered;
}

std::vector<ContentGroup> groups_of(std::span<const OrderedItem> ordered,
                                    std::span<const ItemKey> items) {
  std::vector<ContentGroup> groups;
  for (std::size_t i = 0; i < ordered.size(); ++i) {
    const auto label = static_cast<std::size_t>(items[ordered[i].item].label);
    if (i == 0 || ordered[i].content != ordered[i - 1].content)
      groups.push_back({.first = i, .count = 0, .label = label});
    ++groups.back().count;
    groups.back().label = std::min(groups.back().label, label);
  }
  return groups;
}

/// Returns the share of the `items` that follow `before` others, rounded so that all shares add up.
std::uint64_t share_after(std::uint64_t before, std::uint64_t items, double share) {
  const auto up_to = [share](std::uint64_t n) {
    return static_cast<std::uint64_t>(static_cast<double>(n) * share);
  };
  return up_to(before + items) - up_to(before);
}

std::vector<ClassShare> class_shares(std::span<const ContentGroup> groups,
                                     const SplitShares& shares) {
  std::vector<ClassShare> classes;
  for (const ContentGroup& group : groups) {
    if (group.label >= classes.size()) classes.resize(group.label + 1);
    classes[group.label].items += group.count;
    ++classes[group.label].groups;
  }
  std::uint64_t before = 0;
  for (ClassShare& one : classes) {
    std::uint64_t needed = 1;  // groups: one for training and one for each earlier part
    for (std::size_t part = 0; part < kParts; ++part) {
      const double share = part == 0 ? shares.validation : shares.test;
      if (share == 0) continue;
      one.wanted[part] = share_after(before, one.items, share);
      if (one.groups > needed++) one.wanted[part] = std::max<std::uint64_t>(one.wanted[part], 1);
    }
    before += one.items;
    while (one.wanted[0] + one.wanted[1] >= std::max<std::uint64_t>(one.items, 1) &&
           one.wanted[0] + one.wanted[1] > 0)
      --one.wanted[one.wanted[1] >= one.wanted[0] ? 1 : 0];
    one.groups_left = one.groups;
  }
  return classes;
}

/// Whether `part` can take `count` more items: its share is not full, and enough groups remain for
/// training and for the other part.
bool has_room(const ClassShare& of, std::size_t part, std::size_t count) {
  const std::size_t other = 1 - part;
  const std::uint64_t kept = of.wanted[other] > 0 && of.taken[other] == 0 ? 2 : 1;
  return of.taken[part] + count <= of.wanted[part] && of.groups_left > kept;
}

void take(ContentGroup& group, std::size_t part, ClassShare& of) {
  group.part = part == 0 ? Split::validation : Split::test;
  of.taken[part] += group.count;
  --of.groups_left;
}

/// If every group of a class exceeds a part's share of it, assigns the smallest group to the part.
void fill_empty(std::span<ContentGroup> groups, std::size_t part, std::span<ClassShare> classes) {
  const auto is_empty = [part](const ClassShare& one) {
    return one.wanted[part] > 0 && one.taken[part] == 0 && one.groups_left > 1;
  };
  if (std::ranges::none_of(classes, is_empty)) return;
  std::vector<std::size_t> smallest(classes.size(), kNone);
  for (std::size_t g = 0; g < groups.size(); ++g) {
    std::size_t& best = smallest[groups[g].label];
    if (groups[g].part == Split::train && (best == kNone || groups[g].count < groups[best].count))
      best = g;
  }
  for (std::size_t c = 0; c < classes.size(); ++c)
    if (is_empty(classes[c])) take(groups[smallest[c]], part, classes[c]);
}

}  // namespace

std::vector<Split> draw_split(std::span<const ItemKey> items, const SplitShares& shares,
                              std::uint64_t seed) {
  CONCERTINA_CHECK(
      shares.validation >= 0 && shares.test >= 0 && shares.validation + shares.test < 1,
      "invalid shares {} and {}", shares.validation, shares.test);
  const std::vector<OrderedItem> ordered = ordered_items(items, seed);
  std::vector<ContentGroup> groups = groups_of(ordered, items);
  std::vector<ClassShare> classes = class_shares(groups, shares);
  for (ContentGroup& group : groups) {
    ClassShare& own = classes[group.label];
    for (std::size_t part = 0; part < kParts && group.part == Split::train; ++part)
      if (has_room(own, part, group.count)) take(group, part, own);
  }
  for (std::size_t part = 0; part < kParts; ++part) fill_empty(groups, part, classes);
  std::vector<Split> parts(items.size(), Split::train);
  for (const ContentGroup& group : groups)
    for (std::size_t i = group.first; i < group.first + group.count; ++i)
      parts[ordered[i].item] = group.part;
  return parts;
}

}  // namespace concertina
