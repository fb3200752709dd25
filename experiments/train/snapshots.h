// Snapshots of a run in memory, of which a launch that was lost goes on with at most a few steps
// lost. Invariants: all ranks take them after the same steps; they never end a run; they take at
// most kMostShare of a step's time, or as many as the config says.
#pragma once

#include <cstdint>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiments/run/checkpoint_writer.h"
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

  /// What the last snapshot took over `step_seconds`; infinite once one was not possible.
  double share(double step_seconds) const;
  /// Makes progress with the last one; whether it is not whole yet, here or on another host.
  bool busy();
  /// `share`: the largest of all ranks; `busy`: on any of them. Both the same on all of them.
  void plan(double share, bool busy);
  /// Collective: after step `step`, if one is due, and the last one is whole everywhere.
  void after_step(const Trainer& trainer, std::int64_t step, const nlohmann::json& identity,
                  const std::function<nlohmann::json()>& progress);
  /// Waits until the last one is whole.
  void finish() {
    if (copies_) copies_->finish();
    if (file_) file_->finish();
  }
  /// The run needs none any more: removes them on this host.
  void remove();

 private:
  const std::int64_t asked_;
  SnapshotRun run_;
  SnapshotOf of_;
  std::unique_ptr<SnapshotFile> file_;  // null: off
  std::unique_ptr<PartnerCopies> copies_;
  std::int64_t every_ = 1, last_ = 0;
  bool failed_ = false, busy_ = false, told_no_copies_ = false;
};

}  // namespace concertina
