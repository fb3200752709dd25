#include <fmt/format.h>

#include "core/error.h"
#include "core/index.h"
#include "core/registry.h"
#include "experiments/machine/gather.h"
#include "tests/bench/benches.h"

namespace concertina {

int print_result(const Json& result) {
  print_once(result.dump(2) + "\n");
  return static_cast<int>(result.value("ok", true) ? Exit::ok : Exit::failure);
}

void require_ranks(const Communicator& world, const char* share, const char* bench) {
  if (world.size() > 1) return;
  throw_input(fmt::format("one rank has nobody to {} with", share), "this launch",
              fmt::format("mpirun -n 2 concertina_bench {}", bench));
}

MachineModel probe_links(Communicator& world, const std::vector<int>& hosts, std::size_t bytes,
                         std::pair<int, int> pair) {
  MachineModel machine = probe_classes(world, hosts, bytes);
  if (const auto [a, b] = pair; a != b) {
    const bool remote = hosts[at(a)] != hosts[at(b)];
    (remote ? machine.remote : machine.local) = probe_link(world, a, b, bytes, remote);
  }
  return machine_from_json(gather_json(world, to_json(machine))[0], "the probe of rank 0");
}

}  // namespace concertina

int main(int argc, char** argv) {
  using namespace concertina;
  const Entry<Command> benches[] = {{"change", bench_change()},
                                    {"exchange", bench_exchange()},
                                    {"executor", bench_executor()},
                                    {"prediction", bench_prediction()}};
  return run_program(argc, argv, "concertina_bench", benches);
}
