// Snapshots of a run in memory, of which a launch that was lost goes on with at most a few steps
// lost: in that of this host, and then of another one, by the commit rule of checkpoints.
// Invariants: all ranks take them after the same steps; they never end a run; they take at most
// kMostShare of a step's time, or as many as the config says.
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
  /// Snapshots take at most this share of a step's time, in the mean.
  static constexpr double kMostShare = 0.002;

  /// Collective. `hosts`: by rank. `directory`: of the run, which rank 0 sees. `every`:
  /// checkpoint.snapshot_every. `takes`: whether this launch takes any.
  Snapshots(Communicator& world, const std::vector<int>& hosts, const std::string& directory,
            std::int64_t every, bool takes);

  /// The same on all ranks, but for the directory's path.
  const SnapshotRun& run() const { return run_; }

  /// What the others have to hear after a step, as SaveStages says: where it is positive, the share
  /// of `step_seconds` that the last snapshot took.
  double news(double step_seconds);
  /// `news`: of all working ranks. Collective.
  void heard(std::span<const double> news);
  /// Collective: after step `step`, if one is due, and the last one is whole everywhere.
  void after_step(const Trainer& trainer, std::int64_t step, const nlohmann::json& identity,
                  const std::function<nlohmann::json()>& progress);
  /// Waits until the last one is whole.
  void finish();
  /// The run needs none any more: removes them on this host.
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
  double seconds_ = 0;   // of the last one, copy and hash; of the task until it is over
  BackgroundTask task_;  // last, so that it ends first
};

}  // namespace concertina
