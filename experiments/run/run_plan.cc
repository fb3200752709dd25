#include "experiments/run/run_plan.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/backend.h"
#include "core/error.h"
#include "experiments/config/schedule_file.h"
#include "parallel/generate/passes.h"
#include "parallel/plan/partition.h"

namespace concertina {
namespace {

std::vector<double> all_flops(const std::vector<UnitCost>& costs) {
  std::vector<double> flops;
  for (const UnitCost& cost : costs) flops.push_back(total_flops(cost));
  return flops;
}

void require_trained_unit(const RunConfig& config, int units) {
  if (config.freeze.units < units) return;
  throw_input(fmt::format("freeze.units = {}, but the model has {} units: nothing is left to train",
                          config.freeze.units, units),
              config.where("freeze.units"), fmt::format("freeze.units from 0 to {}", units - 1));
}

Layout choose_layout(const RunConfig& config, const std::vector<double>& flops,
                     const LayoutLimits& limits) {
  const ParallelSection& parallel = config.parallel;
  if (!parallel.layout.pipelines.empty()) {
    validate(parallel.layout, limits);
    return parallel.layout;
  }
  const auto given = [](int value) { return value > 0 ? std::optional<int>(value) : std::nullopt; };
  const Folding folding = schedule_folding(config);
  const Grid grid = fit(limits, given(parallel.pp), given(parallel.dp), folding);
  const std::vector<UnitRange> ranges =
      partition(flops, grid.pp * folding.chunks, parallel.partition);
  return make_layout(ranges, grid, limits.microbatches, limits.leaves, folding);
}

}  // namespace

Precision precision_of(const RunConfig& config) {
  if (const auto found = find_precision(config.numerics.compute)) return *found;
  throw_input(fmt::format("numerics.compute = \"{}\" is unknown", config.numerics.compute),
              config.where("numerics.compute"), "one of: " + list_names(kPrecisions));
}

Folding schedule_folding(const RunConfig& config) {
  return folding_of(find_schedule(config.parallel.schedule), config.parallel.chunks);
}

namespace {

/// The fewest ranks that the layout in `config` is for; 1 where it names none.
int ranks_asked(const RunConfig& config) {
  const ParallelSection& parallel = config.parallel;
  if (!parallel.layout.pipelines.empty()) return rank_count(parallel.layout);
  if (is_schedule_file(parallel.schedule))
    return std::max(1, parallel.dp) *
           static_cast<int>(read_schedule_file(parallel.schedule).plan.rows.size());
  return std::max(1, parallel.pp) * std::max(1, parallel.dp);
}

RunPlan plan_of_run(const RunConfig& config, int world) {
  RunPlan run;
  run.world = world;
  run.microbatches = config.batch.microbatches;
  run.leaves = reduction_leaves(config);
  run.samples = config.batch.global / config.batch.microbatches;
  run.tokens = config.model.context;
  const ModelSection& m = config.model;
  run.model = make_model(m.family, {.layers = m.layers,
                                    .width = m.width,
                                    .heads = m.heads,
                                    .context = m.context,
                                    .vocab = m.vocab,
                                    .samples = run.samples,
                                    .precision = precision_of(config),
                                    .dropout = m.dropout});
  const ModelSpec& spec = run.model->spec();
  const int frozen = config.freeze.units;
  require_trained_unit(config, static_cast<int>(spec.units.size()));
  run.buckets = make_buckets(spec, frozen);
  run.costs = training_costs(spec, frozen);
  const std::vector<double> flops = all_flops(run.costs);
  const LayoutLimits limits{.world = world,
                            .units = static_cast<int>(spec.units.size()),
                            .microbatches = run.microbatches,
                            .leaves = run.leaves};
  if (is_schedule_file(config.parallel.schedule)) {
    FittedSchedule own = fit(read_schedule_file(config.parallel.schedule), config, flops, limits);
    run.layout = std::move(own.layout);
    run.plan = std::move(own.plan);
  } else {
    run.layout = choose_layout(config, flops, limits);
    run.layout.frozen_units = frozen;
    Limits due;
    due.leaf_microbatches = run.microbatches / run.leaves;
    run.plan = make_plan(run.layout, config.parallel.schedule, due, config.parallel.overlap);
  }
  run.owners = assign_owners(run.buckets, run.layout);
  return run;
}

bool fits(const RunConfig& config, int world) {
  try {
    plan_of_run(config, world);
    return true;
  } catch (const Error&) {
    return false;
  }
}

}  // namespace

RunPlan make_run_plan(const RunConfig& config, int world, const std::string& launch) {
  try {
    return plan_of_run(config, world);
  } catch (const Error& error) {
    if (launch.empty()) throw;
    const int ranks = ranks_asked(config);
    if (ranks == world || !fits(config, ranks)) throw;
    throw Error(error.code(), error.message(), error.where(),
                fmt::format("{}; or {}", fmt::format(fmt::runtime(launch), ranks), error.fix()));
  }
}

std::int64_t parameter_count(const RunPlan& run) {
  std::size_t count = 0;
  for (const Bucket& bucket : run.buckets)
    for (const BucketTensor& tensor : bucket.tensors) count += tensor.count;
  return static_cast<std::int64_t>(count);
}

std::string short_form(const Layout& layout) {
  std::set<std::set<int>> replicas;  // the ranks of each; two opposite pipelines are one
  for (const Pipeline& pipeline : layout.pipelines) {
    std::set<int> ranks;
    for (const StagePlacement& stage : pipeline.stages) ranks.insert(stage.rank);
    replicas.insert(std::move(ranks));
  }
  std::vector<std::size_t> depths;
  for (const std::set<int>& ranks : replicas) depths.push_back(ranks.size());
  if (std::all_of(depths.begin(), depths.end(), [&](std::size_t d) { return d == depths[0]; }))
    return fmt::format("pp{}xdp{}", depths[0], depths.size());
  return fmt::format("{}", fmt::join(depths, "+"));
}

}  // namespace concertina
