#include "experiments/predict/measured_costs.h"

#include <fmt/format.h>

#include <filesystem>

#include "core/arena.h"
#include "core/error.h"
#include "core/step_history.h"
#include "experiments/config/config_toml.h"
#include "experiments/machine/gather.h"
#include "experiments/predict/link_probe.h"
#include "experiments/predict/machine_file.h"
#include "io/file.h"
#include "io/run_files.h"
#include "io/strict_json.h"
#include "models/recompute.h"
#include "parallel/predict/forecast.h"
#include "parallel/predict/rank_factors.h"
#include "parallel/predict/unit_work.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::uint64_t kMostCostsFileBytes = 64 << 20;  // size of costs.json
// Columns of RankColumns in measure_steps().
constexpr std::size_t kTrained = 3, kShared = 6, kFirstUnit = 7, kUnitValues = 4;
constexpr const char* kCostsFileHint =
    "a run directory, its costs.json, or a machine file (*.toml)";

constexpr std::pair<const char*, double UnitSeconds::*> kUnitSeconds[] = {
    {"forward_s", &UnitSeconds::forward},
    {"input_s", &UnitSeconds::input},
    {"weight_s", &UnitSeconds::weight},
    {"pack_s", &UnitSeconds::pack},
    {"frozen_s", &UnitSeconds::frozen}};

/// Seconds per byte for adding gradients.
double combine_seconds(Backend& backend) {
  constexpr std::size_t kElements = 1 << 18;
  Arena arena;
  arena.reserve(2 * align_up(kElements * sizeof(float)), backend.memory());
  const View a = arena.take(kElements, DType::f32, "probe"),
             b = arena.take(kElements, DType::f32, "probe");
  std::vector<double> seconds;
  for (int i = 0; i < 9; ++i) {
    seconds.push_back(kernel_seconds(backend.clock(), [&] {
      backend.run(Axpby{1.0F, a, 1.0F, b});
    }));
  }
  return median(std::move(seconds)) / static_cast<double>(kElements * sizeof(float));
}

/// The values of every rank: one row per rank, `width` columns.
class RankColumns {
 public:
  RankColumns(std::vector<double> all, std::size_t width) : all_(std::move(all)), width_(width) {}
  double sum(std::size_t column) const {
    double result = 0;
    for (std::size_t i = column; i < all_.size(); i += width_) result += all_[i];
    return result;
  }
  double largest(std::size_t column) const {
    double result = 0;
    for (std::size_t i = column; i < all_.size(); i += width_) result = std::max(result, all_[i]);
    return result;
  }
  /// The mean over the ranks that have a value.
  double mean(std::size_t column) const {
    int seen = 0;
    for (std::size_t i = column; i < all_.size(); i += width_) seen += all_[i] > 0 ? 1 : 0;
    return seen > 0 ? sum(column) / seen : 0;
  }
  std::size_t ranks() const { return all_.size() / width_; }
  double& value(std::size_t rank, std::size_t column) { return all_[rank * width_ + column]; }

 private:
  std::vector<double> all_;
  std::size_t width_;
};

/// The cost of a step's updates, in elements: all.sum(kTrained) unless the rule uses products.
double update_cost(const Assignment& assignment) {
  double cost = 0;
  for (std::size_t b = 0; b < assignment.buckets.size(); ++b) {
    if (assignment.buckets[b].frozen) continue;
    for (const Part& part : assignment.owners[b].parts) cost += part.cost;
  }
  return cost;
}

/// Returns the factor of each rank and divides all times of the rank by it. If ranks share cores,
/// their times depend on each other, so all factors are 1.
std::vector<double> take_factors(const std::vector<UnitCost>& costs, RankColumns& all) {
  if (all.largest(kShared) > 0) return {};
  std::vector<std::vector<double>> seconds(all.ranks());
  for (std::size_t rank = 0; rank < all.ranks(); ++rank)
    for (std::size_t u = 0; u < costs.size(); ++u)
      for (std::size_t pass = 0; pass < 3; ++pass)
        seconds[rank].push_back(all.value(rank, kFirstUnit + kUnitValues * u + pass));
  std::vector<double> factors = rank_factors(seconds, pass_kinds(costs));
  for (std::size_t rank = 0; rank < all.ranks(); ++rank)
    for (std::size_t column = 0; column < kFirstUnit + kUnitValues * costs.size(); ++column)
      if (column != kTrained && factors[rank] > 0) all.value(rank, column) /= factors[rank];
  return factors;
}

RunConfig config_of(const MeasuredCosts& costs, const std::string& source) {
  RunConfig config;
  read_config(costs.config, source, config);
  return config;
}

}  // namespace

StepCosts measure_steps(Trainer& trainer, Backend& backend, int cores) {
  const std::size_t units = trainer.job().model.units.size();
  const StepSeconds step = trainer.engine().seconds();
  std::vector<double> mine{step.load,
                           step.norm,
                           step.update,
                           static_cast<double>(trainer.engine().trained_elements()),
                           step.post,
                           combine_seconds(backend),
                           static_cast<double>(cores)};
  CONCERTINA_CHECK(mine.size() == kFirstUnit, "{} values precede the units' values", mine.size());
  for (const UnitSeconds& unit : trainer.engine().executor().unit_clock().seconds())
    mine.insert(mine.end(), {unit.forward, unit.input, unit.weight, unit.pack});
  RankColumns all(gather_values(trainer.world(), mine), mine.size());

  StepCosts costs{.units = {}, .machine = {}, .trained_elements = all.sum(kTrained)};
  costs.machine.factors = take_factors(trainer.assignment().costs, all);
  double flops = 0, seconds = 0;
  for (std::size_t u = 0; u < units; ++u) {
    const std::size_t at = kFirstUnit + kUnitValues * u;
    costs.units.push_back({all.mean(at), all.mean(at + 1), all.mean(at + 2), all.mean(at + 3), 0});
    if (costs.units[u].forward <= 0) continue;
    flops += total_flops(trainer.assignment().costs[u]);
    seconds += costs.units[u].forward + costs.units[u].input + costs.units[u].weight;
  }
  MachineModel& machine = costs.machine;
  if (seconds > 0) machine.flops_per_s = flops / seconds;
  machine.load_s = all.largest(0);
  if (all.sum(kTrained) > 0) {
    machine.norm_s_per_element = all.sum(1) / all.sum(kTrained);
    machine.update_s_per_element = all.sum(2) / update_cost(trainer.assignment());
  }
  machine.post_s = all.mean(4);
  machine.combine_s_per_byte = all.mean(5);
  return costs;
}

MeasuredCosts measure_costs(Trainer& trainer, Backend& backend, int threads, CostRecord* record,
                            int cores) {
  Communicator& world = trainer.world();
  const ModelSpec& model = trainer.job().model;
  StepCosts step = measure_steps(trainer, backend, cores);
  int frozen = trainer.layout().frozen_units;
  if (record != nullptr) {
    record->add(step, frozen);
    step.machine = record->machine();
    if (record->complete()) step.units = record->full(), frozen = 0;
  }
  RunConfig config = trainer.config();  // with the units frozen during the measurement
  config.freeze = FreezeSection{.units = frozen};
  MeasuredCosts costs{write_config(config), threads, {}, std::move(step.units), step.machine};
  for (const UnitSpec& unit : model.units) costs.names.push_back(unit.name);
  // A frozen unit may not have run since the last change if all of its outputs were cached.
  for (std::size_t u = 0; u < costs.units.size(); ++u)
    if (UnitSeconds& unit = costs.units[u]; unit.forward <= 0 && costs.machine.flops_per_s > 0)
      unit.forward = trainer.assignment().costs[u].forward_flops / costs.machine.flops_per_s;
  costs.machine = with_links(std::move(costs.machine),
                             probe_classes(world, host_of_ranks(world), model.boundary_bytes));
  return costs;
}

Json to_json(const MeasuredCosts& costs) {
  Json units = Json::array();
  for (std::size_t u = 0; u < costs.units.size(); ++u) {
    Json unit = {{"name", costs.names[u]}};
    for (const auto& [key, seconds] : kUnitSeconds) unit[key] = costs.units[u].*seconds;
    units.push_back(unit);
  }
  return {{"config", costs.config},
          {"threads", costs.threads},
          {"units", units},
          {"machine", to_json(costs.machine)}};
}

MeasuredCosts measured_from_json(const nlohmann::json& json, const std::string& source) {
  try {
    MeasuredCosts costs;
    costs.config = json.at("config").get<std::string>();
    costs.threads = json.at("threads").get<int>();
    for (const nlohmann::json& unit : json.at("units")) {
      costs.names.push_back(unit.at("name").get<std::string>());
      costs.units.emplace_back();
      for (const auto& [key, seconds] : kUnitSeconds) {
        if (seconds == &UnitSeconds::frozen && !unit.contains(key)) continue;  // an older file
        const double value = unit.at(key).get<double>();
        if (!is_valid_value(value))
          throw_input(fmt::format("{} of {} is {}", key, costs.names.back(), value), source,
                      fmt::format("seconds: {}", kValueRange));
        costs.units.back().*seconds = value;
      }
    }
    costs.machine = machine_from_json(json.at("machine"), source);
    config_of(costs, source + ", config");
    return costs;
  } catch (const nlohmann::json::exception& error) {
    throw_input(fmt::format("invalid costs.json: {}", error.what()), source, kCostsFileHint);
  }
}

CostSource read_costs(const std::string& path) {
  const bool directory = is_folder(path);
  const std::string file = directory ? run_file(path, kCostsFile) : path;
  if (!exists_at(file))
    throw_input(
        directory ? "this run has no costs.json: no launch has finished yet" : "no such file", file,
        kCostsFileHint);
  CostSource source{path, {}, {}};
  if (std::filesystem::path(file).extension() == ".toml") {
    source.machine = read_machine_file(file);
    return source;
  }
  const nlohmann::json json =
      parse_json(read_input_file(file, kMostCostsFileBytes, kCostsFileHint));
  if (json.is_discarded()) throw_input("invalid JSON", file, kCostsFileHint);
  source.measured = measured_from_json(json, file);
  source.machine = source.measured->machine;
  return source;
}

namespace {

/// The time to recompute a unit's saved tensors, that is, to run the products of its measured
/// forward pass again: all of them, or all but the last if nothing needs the last one's output.
double recompute_seconds(const UnitCost& cost, const UnitSeconds& measured) {
  return cost.forward_flops > 0 ? measured.forward * cost.recompute_flops / cost.forward_flops : 0;
}

}  // namespace

std::vector<UnitSeconds> unit_seconds(const CostSource& source, const Job& job,
                                      const Assignment& assignment, const RunConfig& config) {
  const ModelSpec& model = job.model;
  if (!source.measured) {
    if (!(source.machine.flops_per_s > 0))
      throw_input("the machine file has no rate for matrix products", source.name,
                  "flops_per_s = FLOP/s of one rank, such as 1e11");
    return seconds_on(source.machine, model, assignment.costs);
  }
  const RunConfig measured = config_of(*source.measured, source.name);
  const ModelSection &a = measured.model, &b = config.model;
  if (a.family != b.family || a.layers != b.layers || a.width != b.width || a.heads != b.heads ||
      a.context != b.context || a.vocab != b.vocab ||
      source.measured->units.size() != model.units.size())
    throw_input(fmt::format("these costs are from another model: {} with {} layers, width {}, {} "
                            "heads, context {}, vocabulary {}",
                            a.family, a.layers, a.width, a.heads, a.context, a.vocab),
                source.name, "costs from a run of the same model, or a machine file");
  if (measured.numerics.compute != config.numerics.compute)
    throw_input(
        fmt::format("these costs are from a run in {}", measured.numerics.compute), source.name,
        fmt::format("costs from a run with numerics.compute = \"{}\"", config.numerics.compute));
  if (measured.freeze.units > assignment.frozen_units())
    throw_input(
        fmt::format("these costs are from a run with {} frozen units, without backward times",
                    measured.freeze.units),
        source.name,
        fmt::format("costs from a run with freeze.units <= {}", assignment.frozen_units()));
  const double scale = static_cast<double>(model.samples) /
                       (static_cast<double>(measured.batch.global) / measured.batch.microbatches);
  std::vector<UnitSeconds> units = source.measured->units;
  ModelSpec before = model;
  for (UnitSpec& unit : before.units) unit.recompute = false;
  choose_recompute(before, measured.parallel.recompute);
  for (std::size_t u = 0; u < units.size(); ++u) {
    const double again = (model.units[u].recompute ? 1 : 0) - (before.units[u].recompute ? 1 : 0);
    units[u].input =
        std::max(0.0, units[u].input + again * recompute_seconds(model.units[u].cost, units[u]));
  }
  units =
      with_frozen_units(model, std::move(units), assignment.frozen_units(), measured.freeze.units);
  for (UnitSeconds& unit : units)
    for (double UnitSeconds::*pass :
         {&UnitSeconds::forward, &UnitSeconds::input, &UnitSeconds::weight})
      unit.*pass *= scale;
  return units;
}

}  // namespace concertina
