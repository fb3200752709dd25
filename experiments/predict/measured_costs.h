// costs.json: what the units and the machine of a run took, so that other schedules, partitions and
// worlds can be predicted from it. Written by `train` into the run directory, by `bench step
// --write-costs`; read by every `--costs`.
// Invariant: read(write(costs)) == costs; it holds the run's config, so it needs nothing else.
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
  int threads = 1;                 // a rank
  std::vector<std::string> names;  // of the units
  std::vector<UnitSeconds> units;  // as StepCosts has them, of typical steps
  MachineModel machine;
  bool operator==(const MeasuredCosts&) const = default;
};

/// The times of the units of `trainer`'s model in its last steps, and of its ranks besides: all
/// of a machine but its links. `cores`: of each host, where its ranks share them. Collective.
StepCosts measure_steps(Trainer& trainer, Backend& backend, int cores = 0);

/// The times of the steps that `trainer` has run, and the links, which are probed now. `record`, to
/// which the last steps are added, knows more where units were frozen during the run; null: the
/// last steps alone. Collective.
MeasuredCosts measure_costs(Trainer& trainer, Backend& backend, int threads,
                            CostRecord* record = nullptr, int cores = 0);

nlohmann::ordered_json to_json(const MeasuredCosts& costs);
/// Errors name `source`.
MeasuredCosts measured_from_json(const nlohmann::json& json, const std::string& source);

/// The source that --costs names: a run directory or its costs.json, or a machine file (*.toml).
struct CostSource {
  std::string name;
  std::optional<MeasuredCosts> measured;
  MachineModel machine;
};
CostSource read_costs(const std::string& path);

/// Seconds of the units of `job` as far as they train in `assignment`; `config` is theirs: measured
/// ones, scaled to the size of its microbatches, or FLOPs over the machine's rate. Throws
/// Error{bad_input} if they were measured with another model, or there is no rate.
std::vector<UnitSeconds> unit_seconds(const CostSource& source, const Job& job,
                                      const Assignment& assignment, const RunConfig& config);

}  // namespace concertina
