// Pairs of ranks that need channels, in rounds that use each rank at most once.
// Invariant: independent of NCCL; every rank computes the same rounds from the same requests.
#pragma once

#include <span>
#include <vector>

#include "parallel/comm/communicator.h"

namespace concertina {

using Pair = std::vector<int>;  // two ranks, ascending

/// wishes[r][p]: whether rank r requests a channel to rank p. Collective.
using Wishes = std::vector<std::vector<std::byte>>;
Wishes gather_wishes(Communicator& control, std::span<const int> peers);

/// Returns disjoint_rounds() of the requested pairs that `known` lacks, and adds them to `known`.
std::vector<std::vector<Pair>> pair_rounds(const Wishes& wishes, std::vector<Pair>& known);

}  // namespace concertina
