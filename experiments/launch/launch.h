// The start of train, eval and generate: ranks that agree, the data, and what trains.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>

#include <optional>
#include <string>

#include "experiments/cache/cache_room.h"
#include "experiments/machine/launch_watch.h"
#include "experiments/machine/threads.h"
#include "experiments/run/trainer.h"
#include "io/datasets/source.h"
#include "parallel/comm/mpi_environment.h"

namespace concertina {

class Launch {
 public:
  /// Collective. Checks that all ranks were told the same and that config, data and world go
  /// together, and takes the memory. Nothing is written anywhere.
  Launch(const RunConfig& config, MpiEnvironment& mpi, const std::string& command);

  Communicator& world;
  Watchdog watchdog;
  LaunchWatch launch_watch;
  std::optional<Watchdog::Patience> starting;  // until begin()
  const std::vector<RankCores> cores;          // by rank
  const std::vector<int> thread_counts;
  const int threads;  // of this rank
  const std::shared_ptr<const Tokenizer> tokenizer;
  std::shared_ptr<const Dataset> dataset;  // null if the config names no data
  RunConfig config;                        // with the steps that run.epochs stands for
  const std::string data_fingerprint;      // empty without one
  const std::string isa;                   // that all ranks compute by; empty on a GPU
  std::unique_ptr<Backend> backend;
  Trainer trainer;
  const CacheRoom cache;  // what training may keep on each host; none for other commands

  bool leads() const { return world.rank() == 0; }
  /// shared_cores() of its ranks; 0 where they compute on GPUs.
  int cores_shared() const { return config.run.device == "cpu" ? shared_cores(cores, threads) : 0; }
  /// numerics_identity() of this run with its whole text, and what of the machine decides bits.
  /// `remember`: the text's SHA-256, in the run directory. Collective.
  nlohmann::json identity(bool remember = true);
  /// Collective, once every rank has its weights: from now on a rank that stands still ends the
  /// run.
  void begin();
};

/// For commands that only read what a run has learned: the layout that it was trained with if it
/// fits the world, else one that follows from the world size (the log says which). Collective.
std::unique_ptr<Launch> open_launch(RunConfig config, MpiEnvironment& mpi,
                                    const std::string& command);

/// Returns the facts that are known when training starts. `from`: steps done before.
nlohmann::ordered_json launch_facts(const Launch& launch, std::int64_t from);

/// The line of one launch in launches.jsonl: it is there from the start, without an end while the
/// launch goes on or if it was killed. Lines of other launches stay as they are, and nothing here
/// ends a run.
class LaunchRecord {
 public:
  /// Appends `facts`, without an end, to `path`.
  LaunchRecord(std::string path, nlohmann::ordered_json facts);

  /// The launch is over at step `to`: fills in the end of its line.
  void end(std::int64_t to, int exit_code);

 private:
  std::string path_;
  nlohmann::ordered_json line_;
};

/// Copies a schedule file into `directory` as schedule-<start of its SHA-256>.csv, and returns
/// {"file", "copy", "sha256"}; the schedule's name otherwise.
nlohmann::ordered_json keep_schedule(const RunConfig& config, const std::string& directory);

}  // namespace concertina
