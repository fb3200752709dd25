// costs.json: the measured times of a run's units and machine, from which other schedules,
// partitions and worlds can be predicted. Written by `train` into the run directory and by `bench
// step --write-costs`; read by every `--costs`. Invariant: read(write(costs)) == costs; it is
// self-contained because it includes the run's config.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "experiments/run/trainer.h"
#include "parallel/predict/cost_record.h"
#include "parallel/predict/machine.h"

namespace concertina {

struct MeasuredCosts {
  std::string config;              // TOML, all keys
  int threads = 1;                 // per rank
  std::vector<std::string> names;  // of the units
  std::vector<UnitSeconds> units;  // of typical steps, as in StepCosts
  MachineModel machine;
  bool operator==(const MeasuredCosts&) const = default;
};

/// The unit times of `trainer`'s model in its last steps, and its machine's costs except for links.
/// `cores`: per host, if the host's ranks share them. Collective.
StepCosts measure_steps(Trainer& trainer, Backend& backend, int cores = 0);

/// The times of the steps that `trainer` has run, and of the links, which are probed now. `record`,
/// to which the last steps are added, has more measurements if units were frozen during the run;
/// null: use only the last steps. Collective.
MeasuredCosts measure_costs(Trainer& trainer, Backend& backend, int threads,
                            CostRecord* record = nullptr, int cores = 0);

nlohmann::ordered_json to_json(const MeasuredCosts& costs);
/// Errors name `source`.
MeasuredCosts measured_from_json(const nlohmann::json& json, const std::string& source);

/// The source named by --costs: a run directory or its costs.json, or a machine file (*.toml).
struct CostSource {
  std::string name;
  std::optional<MeasuredCosts> measured;
  MachineModel machine;
};
CostSource read_costs(const std::string& path);

/// The times of the units of `job`, frozen as in `assignment`: measured times, scaled to the size
/// of its microbatches, or FLOPs divided by the machine's rate. `config`: the job's config. Throws
/// Error{bad_input} if the costs were measured with a different model, or if there is no rate.
std::vector<UnitSeconds> unit_seconds(const CostSource& source, const Job& job,
                                      const Assignment& assignment, const RunConfig& config);

}  // namespace concertina
