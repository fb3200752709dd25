// A run of random samples, ready to be timed: what every bench of whole steps is made of.
// Invariant: training alone, on the clock of its kernels; no data, checkpoints or logs.
#pragma once

#include <memory>
#include <vector>

#include "core/profile_backend.h"
#include "experiments/bench/random_samples.h"
#include "experiments/run/trainer.h"
#include "parallel/simulate/stage_means.h"

namespace concertina {

/// Seconds of the STEP of `row` without its waits for other ranks; 0 if it has none.
double step_seconds(const std::vector<Action>& row, const StepRecord& record);

/// The makespan of `plan` if all actions of a kind and stage take their mean, and STEP on each rank
/// what `steps` says.
double schedule_bound(const Plan& plan, const Layout& layout, const StageMeans& means,
                      const std::vector<double>& steps);

struct TimedTrainer {
  /// Starts from initial weights. Collective over `world`.
  TimedTrainer(const RunConfig& its_config, Communicator& world);

  /// Trains the next step. Returns seconds of this rank, from the moment that all are ready.
  /// Collective.
  double step();
  /// The same with its kernels in `profile`, which may take longer: step() has them as well where
  /// that costs the device nothing.
  double profiled_step();
  bool times_in_passing() const;
  /// The same with every kernel issued by itself, none as part of a graph.
  double issued_step();

  /// The record of this rank's last step.
  const StepRecord& record() const { return trainer.engine().executor().recorder().last(); }
  const std::vector<Action>& row() const { return trainer.engine().executor().row(); }

  const RunConfig config;
  const int threads;
  std::unique_ptr<Backend> backend;
  Profile profile;
  std::unique_ptr<Backend> profiled;  // `backend`, on the clock: the trainer's
  Trainer trainer;
  RandomSamples samples;
  std::int64_t steps = 0;  // trained
};

}  // namespace concertina
