// Benches of parts of the program. Their times depend on the machine, so no test can limit them:
// each compares one part with its prediction or its bound. Run with `mpirun -n 2
// build/tests/bench/concertina_bench NAME`.
#pragma once

#include <nlohmann/json.hpp>

#include "experiments/commands/command.h"
#include "experiments/predict/link_probe.h"
#include "experiments/predict/machine_file.h"

namespace concertina {

using Json = nlohmann::ordered_json;

/// Prints the result on rank 0. Returns the exit code: failure unless `result` is "ok".
int print_result(const Json& result);

/// Adds an option whose help shows its default.
template <class T>
void add_number(CLI::App& app, const char* name, T& value, const char* help,
                const CLI::Validator& check = CLI::PositiveNumber) {
  app.add_option(name, value, help)->check(check)->capture_default_str();
}

/// Rejects a launch of one rank, which cannot `share` with others.
void require_ranks(const Communicator& world, const char* share, const char* bench);

/// Measures the links between these ranks with messages of `bytes`; `hosts` is indexed by rank. A
/// `pair` other than {0, 0} also represents its class of links. Collective, with equal results.
MachineModel probe_links(Communicator& world, const std::vector<int>& hosts, std::size_t bytes,
                         std::pair<int, int> pair = {0, 0});

Command bench_change();
Command bench_exchange();
Command bench_executor();
Command bench_prediction();

}  // namespace concertina
