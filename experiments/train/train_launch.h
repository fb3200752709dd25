// A launch of `train` up to its first step: what is trained, from which step on, and where.
// Invariants: all ranks know the same; rank 0 alone touches the run directory; a launch that is
// refused and a dry run have written nothing.
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
  bool from_scratch = false;  // where a run has logs but no checkpoint
  bool dry_run = false;       // everything up to the first step, and nothing is written
};

/// That run.steps take.
std::uint64_t samples_of_run(const RunConfig& config);

class TrainLaunch : public Launch {
 public:
  /// Refuses what cannot run. Collective, as open().
  TrainLaunch(const RunConfig& asked, TrainMode mode, MpiEnvironment& mpi);

  /// Makes or opens the run directory and loads the newest commit, if there is one. A dry run
  /// makes nothing: it has no monitor and keeps no record.
  void open();
  /// The run goes on from its newest checkpoint or snapshot, or else from its start, as a launch of
  /// its own would; `fault` is why. Collective.
  void go_back();
  /// The launch is over after step `step` of the run.
  void ended(std::int64_t step, int exit_code);

  const double started = now();
  const std::string directory, checkpoints;
  std::vector<FileStamp> text_stamps;  // before anything was read
  nlohmann::json own_identity;         // with the step at which the learning rate ends
  RunHistory history;                  // on rank 0
  std::int64_t done = 0;               // steps of the run, before this launch
  const int lost;                      // ranks, of a launch that goes on in place
  nlohmann::json progress = nlohmann::json::object();  // of the run's policies then, by name
  Selection selection;
  std::optional<Snapshots> snapshots;  // once open
  std::unique_ptr<Monitor> monitor;    // on rank 0
  std::set<std::int64_t> gone_back;    // steps that the run has gone back from
  nlohmann::ordered_json fault;        // on rank 0, of the last of them: the facts of its event

  /// The config as it was asked for, before ranks were lost: the next launch has all again.
  RunConfig asked() const;
  /// Whether any step is left.
  bool trains() const { return done < config.run.steps && !selection.exhausted(); }

 private:
  std::optional<std::int64_t> load_newest(nlohmann::json& stored);
  bool load(nlohmann::json& stored);
  void make_first_state();
  void start_anew();
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

/// After LostRanks, once the launch is gone: where as many ranks were spare, the others are the
/// world, and a launch with `config`, changed to fit, goes on from the newest state. Tells the
/// supervisor, which ends the launch where that takes long. Throws where it makes no sense.
void go_on_in_place(RunConfig& config, MpiEnvironment& mpi);

}  // namespace concertina
