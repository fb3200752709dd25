// In-memory snapshots of a run, from which it resumes after a lost launch, losing at most a few
// steps: first in this host's memory, then in another host's, by the same commit rule as
// checkpoints. Invariants: all ranks take them after the same steps; they never end a run; they use
// at most kMostShare of the step time, or are taken as often as the config says.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <span>
#include <string>

#include "experiments/run/background_task.h"
#include "experiments/run/trainer.h"
#include "experiments/train/partner_copies.h"

namespace concertina {

class Snapshots {
 public:
  /// The maximum mean share of the step time that snapshots use.
  static constexpr double kMostShare = 0.002;

  /// Collective. `hosts`: by rank. `directory`: the run's, visible to rank 0. `every`:
  /// checkpoint.snapshot_every. `takes`: whether this launch takes snapshots.
  Snapshots(Communicator& world, const std::vector<int>& hosts, const std::string& directory,
            std::int64_t every, bool takes);

  /// The same on all ranks except for the directory's path.
  const SnapshotRun& run() const { return run_; }

  /// The value to pass to the other ranks after a step, see SaveStages. A positive value is the
  /// share of `step_seconds` that the last snapshot took.
  double news(double step_seconds);
  /// `news`: the values of all working ranks. Collective.
  void heard(std::span<const double> news);
  /// Takes a snapshot after `step` if one is due and the last is complete everywhere. Collective.
  void after_step(const Trainer& trainer, std::int64_t step, const nlohmann::json& identity,
                  const std::function<nlohmann::json()>& progress);
  /// Waits until the last snapshot is complete.
  void finish();
  /// Removes the snapshots on this host, which the run no longer needs.
  void remove();

 private:
  const std::int64_t asked_;
  SnapshotRun run_;
  SnapshotOf of_;
  std::unique_ptr<SnapshotFile> file_;  // null: off
  std::unique_ptr<PartnerCopies> copies_;
  SaveStages stages_;
  std::int64_t every_ = 1, last_ = 0;
  bool failed_ = false;
  double seconds_ = 0;   // copy and hash of the last one; owned by the running task
  BackgroundTask task_;  // last member, so that it is destroyed first
};

}  // namespace concertina
