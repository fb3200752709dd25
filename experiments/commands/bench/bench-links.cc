// `concertina bench links`: measures latency, bandwidth and CPU time between ranks.
#include "experiments/bench/bench_links.h"
#include "experiments/commands/command.h"
#include "io/file.h"

namespace concertina {
namespace {

struct LinksCommand : CommandOptions {
  LinkBenchOptions bench;
  std::string machine;  // file to write
};

int run_links(const LinksCommand& options, MpiEnvironment& mpi) {
  if (!options.machine.empty()) require_output(options.machine, "--write");
  const MachineModel machine = bench_links(mpi.world(), options.bench);
  print_once(options.json ? to_json(machine).dump() + "\n" : machine_toml(machine));
  if (!options.machine.empty() && mpi.world().rank() == 0)
    atomic_replace(options.machine, machine_toml(machine));
  return 0;
}

void declare_links(CLI::App& app, LinksCommand& options) {
  add_json_option(app, options);
  add_default_option(app, "--bytes", options.bench.bytes, "size of a large message in bytes")
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
