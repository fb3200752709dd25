// Training on random samples, to benchmark whole steps. Invariant: it only trains, and times its
// kernels with the backend's clock; it has no data files, checkpoints or logs.
#pragma once

#include <memory>
#include <vector>

#include "core/profile_backend.h"
#include "experiments/bench/random_samples.h"
#include "experiments/run/trainer.h"
#include "parallel/simulate/stage_means.h"

namespace concertina {

/// The seconds that the STEP in `row` takes, excluding waits for other ranks; 0 if it has no STEP.
double step_seconds(const std::vector<Action>& row, const StepRecord& record);

/// The makespan of `plan` if every action takes the mean duration of its kind and stage, and each
/// rank's STEP takes its entry in `steps`.
double schedule_bound(const Plan& plan, const Layout& layout, const StageMeans& means,
                      const std::vector<double>& steps);

struct TimedTrainer {
  /// Starts from initial weights. Collective over `world`.
  TimedTrainer(const RunConfig& its_config, Communicator& world);

  /// Trains the next step. Returns how many seconds this rank takes once all ranks are ready.
  /// Collective.
  double step();
  /// Like step(), but records kernels in `profile`, which may be slower. step() also records them
  /// if that costs the device nothing.
  double profiled_step();
  bool times_in_passing() const;
  /// Like step(), with every kernel issued separately instead of in a graph.
  double issued_step();

  /// The record of this rank's last step.
  const StepRecord& record() const { return trainer.engine().executor().recorder().last(); }
  const std::vector<Action>& row() const { return trainer.engine().executor().row(); }

  const RunConfig config;
  const int threads;
  std::unique_ptr<Backend> backend;
  Profile profile;
  std::unique_ptr<Backend> profiled;  // `backend` with timing, used by the trainer
  Trainer trainer;
  RandomSamples samples;
  std::int64_t steps = 0;  // trained
};

}  // namespace concertina
