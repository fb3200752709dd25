// Starts train, eval and generate: makes the ranks agree, and creates the data and the trainer.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include <optional>
#include <string>

#include "experiments/cache/cache_room.h"
#include "experiments/evaluate/generate.h"
#include "experiments/launch/teacher.h"
#include "experiments/machine/launch_watch.h"
#include "experiments/machine/threads.h"
#include "experiments/run/trainer.h"
#include "io/datasets/source.h"
#include "parallel/comm/mpi_environment.h"

namespace concertina {

class Launch {
 public:
  /// Collective. Checks that all ranks were given the same config and that config, data and world
  /// are compatible, and reserves the memory. Writes nothing.
  Launch(const RunConfig& config, MpiEnvironment& mpi, const std::string& command);

  Communicator& world;
  Watchdog watchdog;
  LaunchWatch launch_watch;
  std::optional<Watchdog::Patience> starting;  // until begin()
  const std::vector<RankCores> cores;          // indexed by rank
  const std::vector<int> thread_counts;
  const int threads;  // of this rank
  const std::shared_ptr<const Tokenizer> tokenizer;
  const std::shared_ptr<Teacher> teacher;  // null without distill.teacher
  std::shared_ptr<const Dataset> dataset;  // null if the config names no data
  RunConfig config;                        // run.steps is resolved from run.epochs
  const std::string data_fingerprint;      // empty without a dataset
  const std::string isa;                   // instruction set that all ranks use; empty on a GPU
  std::unique_ptr<Backend> backend;
  Trainer trainer;
  const CacheRoom cache;  // activations per host; empty unless training

  bool leads() const { return world.rank() == 0; }
  /// shared_cores() of this launch's ranks; 0 if they compute on GPUs.
  int cores_shared() const { return config.run.device == "cpu" ? shared_cores(cores, threads) : 0; }
  /// The numerics_identity() of this run, including the SHA-256 of its text and the machine
  /// properties that affect bits. `remember`: store the SHA-256 in the run directory. Collective.
  nlohmann::json identity(bool remember = true);
  /// Makes the state of a run without steps: initial weights, or those of model.from. Collective.
  void make_first_state();
  /// Continues texts with the trainer's model, see experiments/evaluate/generate.h. Collective.
  std::vector<Continuation> generate(std::span<const Prompt> prompts,
                                     const std::function<bool()>& stop = {},
                                     const SeeContinuation& see = {});
  /// Called once every rank has its weights: from now on the watchdog aborts the run if a rank
  /// hangs. Collective.
  void begin();
};

/// For commands that only use the results of a run. Uses the training layout if it fits the world
/// size; otherwise derives a layout from the world size and logs it. Omits the teacher. Collective.
std::unique_ptr<Launch> open_launch(RunConfig config, MpiEnvironment& mpi,
                                    const std::string& command);

/// Returns the facts that are known when training starts. `from`: number of steps already done.
nlohmann::ordered_json launch_facts(const Launch& launch, std::int64_t from);

/// A launch's line in launches.jsonl, written at the start. The end is missing while the launch is
/// running or if it was killed. Other lines stay unchanged, and no failure here aborts a run.
class LaunchRecord {
 public:
  /// Appends `facts`, without an end, to `path`.
  LaunchRecord(std::string path, nlohmann::ordered_json facts);

  /// Adds the time, step `to` and exit code of the launch's end to the line.
  void end(std::int64_t to, int exit_code);

 private:
  std::string path_;
  nlohmann::ordered_json line_;
};

/// Copies a schedule file into `directory` as schedule-<prefix of its SHA-256>.csv and returns
/// {"file", "copy", "sha256"}; returns the schedule's name if it is not a file.
nlohmann::ordered_json keep_schedule(const RunConfig& config, const std::string& directory);

}  // namespace concertina
