// Measures links between ranks, as a pipeline uses them.
// Invariant: collective, fixed in order, a fraction of a second a pair; other ranks stand by.
#pragma once

#include <vector>
#include "core/memory.h"
#include "parallel/plan/assignment.h"
#include "parallel/predict/machine.h"

#include "parallel/comm/communicator.h"
#include "parallel/simulate/costs.h"

namespace concertina {

/// Messages of `bytes` between ranks a and b, or shorter ones where these would take more than 0.1
/// s; `remote`: on different hosts. Latency and bandwidth are from messages back and forth. The CPU
/// time is what a message on its way adds to a rank that computes meanwhile and looks at its
/// transfers now and then, as the executor does between units. Where copies are all that a message
/// takes (one host, shared memory), the bandwidth is infinite. Collective over `world`.
LinkCosts probe_link(Communicator& world, int a, int b, std::size_t bytes, bool remote);

/// Links by class from the first pair of ranks on one host and the first on two; 0 costs where
/// there is none. Collective.
struct LinkClasses {
  LinkCosts local, remote;
};
LinkClasses probe_classes(Communicator& world, const std::vector<int>& hosts, std::size_t bytes);

/// A link at its best: of messages back and forth the quickest, so that what else runs on the two
/// hosts does not count. 0: not measured.
struct LinkSpeed {
  double latency = 0, bandwidth = 0;  // seconds; bytes a second
};
/// The link to `peer`, which calls this at the same time and gets the same; one of the two leads.
/// Takes 0.1 s, 0.4 s at 50 Mbit/s, 4 s at 2 Mbit/s. Others are not concerned: many pairs measure
/// at once.
LinkSpeed probe_speed(Communicator& world, int peer, bool leads);

/// Sets exchange_s_per_byte, copy_s_per_byte and block_s_per_byte of `moves`: messages between
/// two ranks of one host, both ways at once, copies within a rank's memory, and what blocks take
/// that are new, each as long as a bucket of `assignment` is on average. All ranks measure at once;
/// the slowest counts. `tensors` moves blocks of `memory` between the ranks of `world`; `hosts`: by
/// rank. Collective; takes five times the model's weights for a moment, at most 160 MiB per rank.
void probe_move(Communicator& world, Communicator& tensors, Memory& memory,
                const std::vector<int>& hosts, const Assignment& assignment, MoveRates& moves);

}  // namespace concertina
