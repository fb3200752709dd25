// `concertina bench links`: measures latency, bandwidth and CPU time between ranks.
#include <algorithm>

#include "experiments/commands/command.h"
#include "experiments/machine/gather.h"
#include "experiments/predict/link_probe.h"
#include "experiments/predict/machine_file.h"
#include "io/file.h"

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

/// Measures the links between all pairs of ranks, and medians by class; with more than 16, only
/// the classes "one host" and "two hosts". Collective.
MachineModel bench_links(Communicator& world, std::size_t bytes) {
  if (world.size() == 1)
    throw_input("one rank has no links to measure", "this launch",
                "mpirun -n 2 concertina bench links");
  const std::vector<int> hosts = host_of_ranks(world);
  if (world.size() > kMostRanks) return probe_classes(world, hosts, bytes);
  MachineModel machine;
  machine.ranks_per_host = ranks_per_host(hosts);
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

struct LinksCommand : CommandOptions {
  int bytes = 1 << 20;  // size of a large message
  std::string machine;  // file to write
};

int run_links(const LinksCommand& options, MpiEnvironment& mpi) {
  if (!options.machine.empty()) require_output(options.machine, "--write");
  const MachineModel machine = bench_links(mpi.world(), static_cast<std::size_t>(options.bytes));
  print_once(options.json ? to_json(machine).dump() + "\n" : machine_toml(machine));
  if (!options.machine.empty() && mpi.world().rank() == 0)
    atomic_replace(options.machine, machine_toml(machine));
  return 0;
}

void declare_links(CLI::App& app, LinksCommand& options) {
  add_json_option(app, options);
  add_default_option(app, "--bytes", options.bytes, "size of a large message in bytes")
      ->check(CLI::Range(1, 1 << 30));
  app.add_option("--write", options.machine, "machine file to write, for the --costs option")
      ->type_name("FILE");
}

}  // namespace

Command command_bench_links() {
  return make_command<LinksCommand>("measure latency, bandwidth and CPU time between ranks",
                                    declare_links, run_links);
}

}  // namespace concertina
