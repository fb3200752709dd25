// Benches of parts of the program that its tests cannot bound, since they depend on the machine:
// each measures one part beside its prediction or its bound. `mpirun -n 2
// build/tests/bench/concertina_bench NAME`.
#pragma once

#include <nlohmann/json.hpp>

#include "experiments/commands/command.h"
#include "experiments/predict/link_probe.h"
#include "experiments/predict/machine_file.h"

namespace concertina {

using Json = nlohmann::ordered_json;

/// Prints the result on rank 0. Returns the exit code: a failure where `result` is not "ok".
int print_result(const Json& result);

/// An option whose help has its default.
template <class T>
void add_number(CLI::App& app, const char* name, T& value, const char* help,
                const CLI::Validator& check = CLI::PositiveNumber) {
  app.add_option(name, value, help)->check(check)->capture_default_str();
}

/// Refuses a launch of one rank, which has nobody to `share`.
void require_ranks(const Communicator& world, const char* share, const char* bench);

/// The links between these ranks, for messages of `bytes`; `hosts`: by rank. Where `pair` is not
/// {0, 0}, the link between these two is also that of its class. Collective, and the same on all.
MachineModel probe_links(Communicator& world, const std::vector<int>& hosts, std::size_t bytes,
                         std::pair<int, int> pair = {0, 0});

Command bench_change();
Command bench_exchange();
Command bench_executor();
Command bench_prediction();

}  // namespace concertina
