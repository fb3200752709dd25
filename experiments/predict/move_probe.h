// The time of the bytes of a layout change on this machine, measured by doing the same.
#pragma once

#include <vector>

#include "core/memory.h"
#include "parallel/comm/communicator.h"
#include "parallel/plan/assignment.h"
#include "parallel/predict/machine.h"

namespace concertina {

/// Sets exchange_s_per_byte, copy_s_per_byte and block_s_per_byte of `moves`: messages between
/// two ranks of one host, both ways at once, copies within a rank's memory, and what blocks take
/// that are new, each as long as a bucket of `assignment` is on average. All ranks measure at once;
/// the slowest counts. `tensors` moves blocks of `memory` between the ranks of `world`; `hosts`: by
/// rank. Collective; takes five times the model's weights
/// for a moment, at most 160 MiB per rank.
void probe_move(Communicator& world, Communicator& tensors, Memory& memory,
                const std::vector<int>& hosts, const Assignment& assignment, MoveRates& moves);

}  // namespace concertina
