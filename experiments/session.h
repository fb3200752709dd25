// What train, eval and generate have in common: the data, the plan and this rank's engine.
#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "experiments/rank_engine.h"
#include "io/text_dataset.h"
#include "parallel/mpi_environment.h"

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

}  // namespace concertina
