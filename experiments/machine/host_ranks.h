// Which ranks share a host.
#pragma once

#include <vector>

#include "parallel/comm/communicator.h"

namespace concertina {

/// The host of each rank, numbered in order of appearance. Collective.
std::vector<int> host_of_ranks(Communicator& world);

/// How many ranks a host has, if all have as many, one host after the other; else 0, as if all
/// were on one.
int ranks_per_host(const std::vector<int>& hosts);

}  // namespace concertina
