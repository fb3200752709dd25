// The directories that all ranks have to see: each rank writes its part of a checkpoint itself.
// Invariants: every rank leaves with the same answer; nothing is left in any directory.
#pragma once

#include "experiments/config/config.h"
#include "parallel/comm/communicator.h"

namespace concertina {

/// Throws the same bad input on every rank if one of them does not see the run directory or the
/// directory of checkpoints that rank 0 sees; it names ranks and hosts. Where a directory is not
/// there yet, the one counts that it will be made in. Rank 0 makes a file there, for which the
/// others look some seconds long: network file systems remember for a while what was not there.
/// Where it cannot make one, it is left to RunDirectory to say why. Collective.
void require_seen_by_all(Communicator& world, const RunConfig& config);

}  // namespace concertina
