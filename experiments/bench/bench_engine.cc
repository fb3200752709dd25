#include "experiments/bench/bench_engine.h"

#include <algorithm>

#include "core/clock.h"
#include "experiments/run/devices.h"

namespace concertina {

BenchEngine::BenchEngine(const RunConfig& its_config, Communicator& world)
    : config(its_config),
      threads(std::max(1, config.run.threads)),
      run(make_run_plan(config, world.size(), "mpirun -n {} concertina bench ...")),
      backend(make_backend(config, threads, world)),
      profiled(make_profile_backend(*backend, profile)),
      engine(run, config, world.rank(), *profiled),
      tokens(config.model.context, config.model.vocab) {
  profile.active = times_in_passing();
  require_memory(engine, config, threads, world);
  engine.start(world);
  engine.initialize();
}

bool BenchEngine::times_in_passing() const {
  return backend->clock().mark_seconds() == 0;
}

double BenchEngine::profiled_step() {
  profile.active = true;
  const double seconds = step();
  profile.active = times_in_passing();
  return seconds;
}

double BenchEngine::issued_step() {
  profile.repeats = false;
  const double seconds = step();
  profile.repeats = true;
  return seconds;
}

double BenchEngine::step() {
  engine.world().barrier();
  const double start = now();
  engine.train(++steps, tokens);
  return now() - start;
}

}  // namespace concertina
