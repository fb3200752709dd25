// A launch of `train` up to its first step: what is trained, from which step, and where.
// Invariants: all ranks have the same information; only rank 0 accesses the run directory; a
// refused launch and a dry run write nothing.
#pragma once

#include <memory>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/clock.h"
#include "experiments/launch/launch.h"
#include "experiments/record/monitor.h"
#include "experiments/record/run_history.h"
#include "experiments/train/selection.h"
#include "experiments/train/snapshots.h"
#include "io/checkpoint/run_directory.h"

namespace concertina {

struct TrainMode {
  bool from_scratch = false;  // allowed for a run with logs but no checkpoint
  bool dry_run = false;       // stop before the first step and write nothing
};

/// The samples consumed in run.steps steps.
std::uint64_t samples_of_run(const RunConfig& config);

class TrainLaunch : public Launch {
 public:
  /// Throws if the run is not possible. Collective, like open().
  TrainLaunch(const RunConfig& asked, TrainMode mode, MpiEnvironment& mpi);

  /// Creates or opens the run directory and loads the newest commit, if there is one. A dry run
  /// creates nothing: it has no monitor and keeps no record.
  void open();
  /// Resumes the run from its newest checkpoint or snapshot, or from its start, as a new launch
  /// would; `fault` is the reason. Collective.
  void go_back();
  /// Records that the launch ended after step `step` of the run.
  void ended(std::int64_t step, int exit_code);

  const double started = now();
  const std::string directory, checkpoints;
  std::vector<FileStamp> text_stamps;  // before anything was read
  nlohmann::json own_identity;         // includes the step at which the learning-rate schedule ends
  RunHistory history;                  // on rank 0
  std::int64_t done = 0;               // steps of the run before this launch
  const int lost;                      // ranks lost by a launch that continues in place
  nlohmann::json progress = nlohmann::json::object();  // state of the policies, by name
  Selection selection;
  std::optional<Snapshots> snapshots;     // set by open()
  std::unique_ptr<Monitor> monitor;       // on rank 0
  std::set<std::int64_t> rollback_steps;  // steps from which the run has gone back
  nlohmann::ordered_json fault;           // on rank 0: facts of the last rollback

  /// The config as requested, before ranks were lost: the next launch uses all of them again.
  RunConfig asked() const;
  /// Whether any steps are left.
  bool trains() const { return done < config.run.steps && !selection.exhausted(); }

 private:
  std::optional<std::int64_t> load_newest(nlohmann::json& stored);
  bool load(nlohmann::json& stored);
  void start_from_scratch();
  void restore_selection();
  void refuse_from_scratch() const;
  void settle_lr_steps(const nlohmann::json& stored);
  void open_logs(const nlohmann::json& stored);
  void log_differences(const nlohmann::json& stored, bool trains) const;
  void log_start() const;

  const TrainMode mode_;
  std::optional<RunDirectory> owned_;   // on rank 0
  std::optional<LaunchRecord> record_;  // on rank 0
};

/// Called after LostRanks, once the launch is destroyed. If enough ranks were spare, the survivors
/// become the world, and a launch with `config`, adjusted to it, resumes from the newest state.
/// Informs the supervisor, which kills the launch if this takes too long. Throws if that fails.
void go_on_in_place(RunConfig& config, MpiEnvironment& mpi);

}  // namespace concertina
