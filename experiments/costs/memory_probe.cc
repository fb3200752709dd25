#include "experiments/costs/memory_probe.h"

#include <algorithm>
#include <array>
#include <cstring>
#include <vector>

#include "core/arena.h"
#include "core/clock.h"
#include "core/step_history.h"
#include "experiments/run/gather.h"

namespace concertina {

void probe_memory(Communicator& world, MachineModel& machine) {
  constexpr std::size_t kBytes = std::size_t{64} << 20;  // more than caches hold
  constexpr int kTimes = 3;
  const Arena source(kBytes), target(kBytes);
  std::memset(source.data(), 1, kBytes);
  std::memset(target.data(), 1, kBytes);
  std::vector<double> old_block, new_block;
  for (int i = 0; i < kTimes; ++i) {
    world.barrier();
    double start = now();
    std::memcpy(target.data(), source.data(), kBytes);
    old_block.push_back(now() - start);
    world.barrier();
    start = now();
    {
      const Arena fresh(kBytes);
      std::memcpy(fresh.data(), source.data(), kBytes);
    }
    new_block.push_back(now() - start);
  }
  const std::vector<double> all =
      largest_values(world, std::array{median(old_block), median(new_block)});
  machine.copy_s_per_byte = all[0] / kBytes;
  machine.block_s_per_byte = std::max(0.0, all[1] - all[0]) / kBytes;
}

}  // namespace concertina
