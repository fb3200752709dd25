// Snapshots of a run in memory, of which a launch that was lost goes on with at most a few steps
// lost. Invariants: all ranks take them after the same steps; they never end a run; they take at
// most kMostShare of a step's time, or as many as the config says.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "experiments/run/run_checkpoint.h"

namespace concertina {

class Snapshots {
 public:
  /// Snapshots take at most this share of a step's time, in the mean.
  static constexpr double kMostShare = 0.01;

  /// Collective. `directory`: of the run, which rank 0 sees. `every`: checkpoint.snapshot_every.
  /// `takes`: whether this launch takes any.
  Snapshots(Communicator& world, const std::string& directory, std::int64_t every, bool takes);

  const std::string& prefix() const { return prefix_; }

  /// What the last snapshot took over `step_seconds`; infinite once one was not possible.
  double share(double step_seconds) const;
  /// `share`: the largest of all ranks. The same on all of them.
  void plan(double share);
  /// After step `step`, if one is due.
  void after_step(const Trainer& trainer, std::int64_t step, const nlohmann::json& identity,
                  const std::function<nlohmann::json()>& progress);
  /// The run needs none any more: removes them on this host.
  void remove();

 private:
  const std::int64_t asked_;
  std::string prefix_;
  SnapshotOf of_;
  std::unique_ptr<SnapshotFile> file_;  // null: off
  std::int64_t every_ = 1, last_ = 0;
  bool failed_ = false;
};

}  // namespace concertina
