#include "experiments/bench/timed_trainer.h"

#include <algorithm>

#include "core/clock.h"
#include "experiments/predict/predict_memory.h"
#include "experiments/run/devices.h"
#include "parallel/simulate/simulate.h"

namespace concertina {

double step_seconds(const std::vector<Action>& row, const StepRecord& record) {
  if (row.empty() || row.back().kind != Kind::STEP) return 0;
  const ActionTime& step = record.actions.back();
  return step.busy - waited(record, step);
}

double schedule_bound(const Plan& plan, const Layout& layout, const StageMeans& means,
                      const std::vector<double>& steps) {
  Costs costs;
  costs.stages = means.costs();
  for (const double seconds : steps)
    costs.ranks.push_back({.load = 0, .norm = 0, .update = seconds, .refresh = 0});
  return simulate(plan, layout, costs).makespan;
}

TimedTrainer::TimedTrainer(const RunConfig& its_config, Communicator& world)
    : config(its_config),
      threads(std::max(1, config.run.threads)),
      backend(make_backend(config, threads, world)),
      profiled(make_profile_backend(*backend, profile)),
      trainer(config, *profiled, world, nullptr, "mpirun -n {} concertina bench ..."),
      samples(config, trainer.job().model) {
  profile.active = times_in_passing();
  require_memory(trainer, threads);
  trainer.start();
  trainer.initialize();
}

bool TimedTrainer::times_in_passing() const {
  return backend->clock().mark_seconds() == 0;
}

double TimedTrainer::profiled_step() {
  profile.active = true;
  const double seconds = step();
  profile.active = times_in_passing();
  return seconds;
}

double TimedTrainer::issued_step() {
  profile.repeats = false;
  const double seconds = step();
  profile.repeats = true;
  return seconds;
}

double TimedTrainer::step() {
  trainer.world().barrier();
  const double start = now();
  trainer.step(++steps, samples);
  return now() - start;
}

}  // namespace concertina
