// Benches of parts of the program that its tests cannot bound, since they depend on the machine:
// each measures one part beside its prediction or its bound. `mpirun -n 2
// build/tests/bench/concertina_bench NAME`.
#pragma once

#include <nlohmann/json.hpp>

#include "experiments/commands/command.h"

namespace concertina {

/// Prints the result on rank 0. Returns the exit code: a failure where `result` is not "ok".
int print_result(const nlohmann::ordered_json& result);

namespace change_bench {
Command bench_change();
}
namespace exchange_bench {
Command bench_exchange();
}
namespace executor_bench {
Command bench_executor();
}
namespace prediction_bench {
Command bench_prediction();
}

}  // namespace concertina
