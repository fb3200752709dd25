#include "experiments/bench/bench_engine.h"

#include <algorithm>

#include "core/clock.h"
#include "experiments/run/devices.h"

namespace concertina {

BenchEngine::BenchEngine(const RunConfig& its_config, Communicator& world)
    : config(its_config),
      threads(std::max(1, config.run.threads)),
      run(make_run_plan(config, world.size())),
      backend(make_backend(config, threads, world)),
      profiled(make_profile_backend(*backend, profile)),
      engine(run, config, world.rank(), *profiled),
      tokens(config.model.context, config.model.vocab) {
  require_memory(engine, config, threads, world);
  engine.start(world);
  engine.initialize();
}

double BenchEngine::step() {
  engine.world().barrier();
  const double start = now();
  engine.train(++steps, tokens);
  backend->synchronize();
  return now() - start;
}

}  // namespace concertina
