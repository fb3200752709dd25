#include "core/registry.h"
#include "tests/bench/benches.h"

namespace concertina {

int print_result(const nlohmann::ordered_json& result) {
  print_once(result.dump(2) + "\n");
  return static_cast<int>(result.value("ok", true) ? Exit::ok : Exit::failure);
}

}  // namespace concertina

int main(int argc, char** argv) {
  using namespace concertina;
  const Entry<Command> benches[] = {{"change", change_bench::bench_change()},
                                    {"exchange", exchange_bench::bench_exchange()},
                                    {"executor", executor_bench::bench_executor()},
                                    {"prediction", prediction_bench::bench_prediction()}};
  return run_program(argc, argv, "concertina_bench", benches);
}
