// Which pairs of ranks need channels, in rounds that touch each rank at most once.
// Invariant: pure of NCCL; every rank computes the same rounds from the same wishes.
#pragma once

#include <span>
#include <vector>

#include "parallel/comm/communicator.h"

namespace concertina {

struct Pair {
  int low = 0, high = 0;
  bool operator==(const Pair&) const = default;
};

/// wishes[r][p]: rank r wants to talk with rank p. Collective.
using Wishes = std::vector<std::vector<std::byte>>;
Wishes gather_wishes(Communicator& control, std::span<const int> peers);

/// The pairs that a wish of either end names and `known` lacks, greedily; `known` has them then.
std::vector<std::vector<Pair>> pair_rounds(const Wishes& wishes, std::vector<Pair>& known);

}  // namespace concertina
