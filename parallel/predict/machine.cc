#include "parallel/predict/machine.h"

#include <limits>

#include "core/index.h"

namespace concertina {

double rank_factor(const MachineModel& machine, int rank) {
  const std::size_t index = at(rank);
  return index < machine.factors.size() && machine.factors[index] > 0 ? machine.factors[index] : 1;
}

double local_rate(const MachineModel& machine) {
  const LinkCosts& local = machine.local;
  if (std::isfinite(local.bandwidth)) return local.bandwidth;
  return local.receive_cpu > 0 ? 1 / local.receive_cpu : std::numeric_limits<double>::infinity();
}

double update_seconds(const MachineModel& machine) {
  if (machine.update_s_per_element > 0) return machine.update_s_per_element;
  constexpr double kUpdateBytes = 30;  // fp32: gradient, weight and two moments
  return over(kUpdateBytes, machine.device.memory_bytes_per_s);
}

bool has_links(const MachineModel& machine) {
  return machine.local != LinkCosts{} || machine.remote != LinkCosts{} || !machine.pairs.empty();
}

MachineModel with_links(MachineModel machine, const MachineModel& other) {
  machine.ranks_per_host = other.ranks_per_host;
  machine.local = other.local;
  machine.remote = other.remote;
  machine.pairs = other.pairs;
  if (other.moves != MoveRates{}) machine.moves = other.moves;
  return machine;
}

void add_links(const MachineModel& machine, int ranks, Costs& costs) {
  costs.post = machine.post_s;
  costs.local = machine.local;
  costs.remote = machine.remote;
  costs.pairs = machine.pairs;
  costs.hosts = hosts_of(machine, ranks);
}

std::vector<int> hosts_of(const MachineModel& machine, int ranks) {
  std::vector<int> hosts;
  for (int rank = 0; machine.ranks_per_host > 0 && rank < ranks; ++rank)
    hosts.push_back(rank / machine.ranks_per_host);
  return hosts;
}

}  // namespace concertina
