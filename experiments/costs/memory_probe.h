// What new and copied bytes of host memory take, for the prediction of a change.
#pragma once

#include "experiments/costs/machine_model.h"
#include "parallel/comm/communicator.h"

namespace concertina {

/// Sets copy_s_per_byte and block_s_per_byte of `machine`: copies between blocks of host memory,
/// old and new, on all ranks at once; those of the slowest rank. Takes 192 MiB per rank for that
/// time. Collective.
void probe_memory(Communicator& world, MachineModel& machine);

}  // namespace concertina
