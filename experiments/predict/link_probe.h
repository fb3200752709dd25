// Measures links between ranks under pipeline conditions. Invariant: collective, in a fixed order;
// takes a fraction of a second per pair, while other ranks are idle.
#pragma once

#include <vector>
#include "core/memory.h"
#include "parallel/plan/assignment.h"
#include "parallel/predict/machine.h"

#include "parallel/comm/communicator.h"
#include "parallel/simulate/costs.h"

namespace concertina {

/// Measures messages of `bytes` between ranks a and b, or shorter ones if these would take more
/// than 0.1 s; `remote`: on different hosts. Latency and bandwidth are those of round trips. The
/// CPU time is the time that a transfer adds to a rank that computes meanwhile and polls
/// occasionally, as the executor does between units. If a message needs only copies (one host,
/// shared memory), the bandwidth is infinite. Collective over `world`.
LinkCosts probe_link(Communicator& world, int a, int b, std::size_t bytes, bool remote);

/// Sets local and remote from the first pair of ranks on one host and the first pair on two hosts,
/// all 0 without such a pair, and ranks_per_host. Collective.
MachineModel probe_classes(Communicator& world, const std::vector<int>& hosts, std::size_t bytes);

/// The best case of a link: the fastest round trip, so that other load on the two hosts is not
/// counted. 0 means not measured.
struct LinkSpeed {
  double latency = 0, bandwidth = 0;  // seconds; bytes per second
};
/// Measures the link to `peer`, which calls this at the same time and receives the same result; one
/// of the two leads. Takes 0.1 s, but 0.4 s at 50 Mbit/s and 4 s at 2 Mbit/s. Does not involve
/// other ranks: many pairs can measure at once.
LinkSpeed probe_speed(Communicator& world, int peer, bool leads);

/// Sets exchange_s_per_byte, copy_s_per_byte and block_s_per_byte of `moves` by measuring messages
/// between two ranks on one host in both directions at once, copies within a rank's memory, and the
/// allocation of blocks of `assignment`'s average bucket size. All ranks measure at once; the
/// slowest result counts. `tensors` moves blocks of `memory` between the ranks of `world`; `hosts`:
/// by rank. Collective; each rank temporarily needs 5 times the weights' size, at most 160 MiB.
void probe_move(Communicator& world, Communicator& tensors, Memory& memory,
                const std::vector<int>& hosts, const Assignment& assignment, MoveRates& moves);

}  // namespace concertina
