#include "experiments/bench/bench_links.h"

#include <algorithm>

#include "core/error.h"
#include "experiments/machine/gather.h"
#include "experiments/predict/link_probe.h"

namespace concertina {
namespace {

constexpr int kMostRanks = 16;

LinkCosts median_link(const std::vector<LinkCosts>& links) {
  const auto of = [&](double LinkCosts::*metric) {
    std::vector<double> values;
    for (const LinkCosts& link : links) values.push_back(link.*metric);
    std::sort(values.begin(), values.end());
    return values[values.size() / 2];  // a measured value: the mean of two might be infinite
  };
  if (links.empty()) return {};
  return {of(&LinkCosts::latency), of(&LinkCosts::bandwidth), of(&LinkCosts::send_cpu),
          of(&LinkCosts::receive_cpu), of(&LinkCosts::eager_bytes)};
}

}  // namespace

MachineModel bench_links(Communicator& world, const LinkBenchOptions& options) {
  if (world.size() == 1)
    throw_input("one rank has no links to measure", "this launch",
                "mpirun -n 2 concertina bench links");
  const auto bytes = static_cast<std::size_t>(options.bytes);
  const std::vector<int> hosts = host_of_ranks(world);
  MachineModel machine;
  machine.ranks_per_host = ranks_per_host(hosts);
  if (world.size() > kMostRanks) {
    const LinkClasses classes = probe_classes(world, hosts, bytes);
    machine.local = classes.local;
    machine.remote = classes.remote;
    return machine;
  }
  std::vector<LinkCosts> local, remote;
  for (int a = 0; a < world.size(); ++a)
    for (int b = a + 1; b < world.size(); ++b) {
      const bool same = hosts[static_cast<std::size_t>(a)] == hosts[static_cast<std::size_t>(b)];
      const LinkCosts link = probe_link(world, a, b, bytes, !same);
      (same ? local : remote).push_back(link);
      if (world.size() > 2) machine.pairs[{a, b}] = machine.pairs[{b, a}] = link;
    }
  machine.local = median_link(local);
  machine.remote = median_link(remote);
  return machine;
}

}  // namespace concertina
