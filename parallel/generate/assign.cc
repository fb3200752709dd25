#include "parallel/generate/assign.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/error.h"
#include "core/number_text.h"
#include "parallel/generate/passes.h"
#include "parallel/plan/partition.h"
#include "parallel/plan/plan_index.h"

namespace concertina {
namespace {

void require_trained_unit(int frozen, int units) {
  if (frozen < units) return;
  throw_input(fmt::format("freeze.units = {}, but the model has {} units: nothing is left to train",
                          frozen, units),
              "freeze.units", fmt::format("freeze.units from 0 to {}", units - 1));
}

void require_workers(const Request& request) {
  if (request.spare < request.world) return;
  throw_input(fmt::format("parallel.spare = {} of {}: none is left to work", request.spare,
                          counted(request.world, "rank")),
              "parallel.spare", fmt::format("at most {}", request.world - 1));
}

std::vector<double> balanced_costs(const Job& job, const Request& request) {
  if (!request.unit_costs.empty()) return request.unit_costs;
  std::vector<double> flops;
  for (const UnitCost& cost : training_costs(job.model, request.frozen_units))
    flops.push_back(total_flops(cost));
  return flops;
}

Layout grid_layout(const Request& request, const std::vector<double>& costs,
                   const LayoutLimits& limits) {
  const auto given = [](int value) { return value > 0 ? std::optional<int>(value) : std::nullopt; };
  const Folding folding = folding_of(request);
  const Grid grid = fit(limits, given(request.pp), given(request.dp), folding);
  return make_layout(partition(costs, grid.pp * folding.chunks, request.partition), grid,
                     limits.microbatches, limits.leaves, folding);
}

}  // namespace

Assignment assign(const Job& job, const Request& request) {
  require_trained_unit(request.frozen_units, job.units());
  require_workers(request);
  const std::vector<double> costs = balanced_costs(job, request);
  const LayoutLimits limits{.world = request.world - request.spare,
                            .units = job.units(),
                            .microbatches = job.microbatches * request.batches,
                            .leaves = job.leaves * request.batches};
  FittedSchedule own{request.file ? request.file->plan : Plan{}, request.layout};
  if (own.layout.pipelines.empty()) {
    if (request.file)
      own = fit_schedule(request, costs, limits);
    else
      own.layout = grid_layout(request, costs, limits);
  }
  validate(own.layout, limits, request.world);
  own.layout.frozen_units = request.frozen_units;
  Limits due;
  due.leaf_microbatches = job.microbatches / job.leaves;
  own.plan = request.file ? complete(std::move(own.plan), own.layout, request.file->path, due,
                                     request.overlap)
                          : make_plan(own.layout, request.schedule, due, request.overlap);
  return make_assignment(job, std::move(own.layout), std::move(own.plan), request.world);
}

int ranks_asked(const Request& request) {
  if (!request.layout.pipelines.empty())
    return std::max(rank_count(request.layout),
                    static_cast<int>(working_ranks(request.layout).size()) + request.spare);
  const int rows =
      request.file ? static_cast<int>(request.file->plan.rows.size()) : std::max(1, request.pp);
  return std::max(1, request.dp) * rows + request.spare;
}

Folding folding_of(const Request& request) {
  return folding_of(find_schedule(request.schedule), request.chunks);
}

}  // namespace concertina
