// What train, eval and generate have in common: the data, the plan and this rank's engine.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "experiments/run/rank_engine.h"
#include "io/text_dataset.h"
#include "parallel/comm/mpi_environment.h"

namespace concertina {

class Session {
 public:
  /// Collective. Checks that config, data and world go together, and takes the memory.
  Session(const RunConfig& config, MpiEnvironment& mpi);

  const RunConfig config;
  Communicator& world;
  const int threads;
  std::shared_ptr<const TextDataset> dataset;  // null if the config names no text
  const RunPlan run;
  std::unique_ptr<Backend> backend;
  Watchdog watchdog;
  RankEngine engine;

  bool leads() const { return world.rank() == 0; }
  /// numerics_identity() of this run.
  nlohmann::json identity() const;
};

/// For commands that only read what a run has learned: the layout that it was trained with if it
/// fits the world, else one that follows from the world size (the log says which). Collective.
std::unique_ptr<Session> open_session(RunConfig config, MpiEnvironment& mpi);

}  // namespace concertina
