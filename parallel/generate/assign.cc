#include "parallel/generate/assign.h"

#include <algorithm>

#include "core/text/number_text.h"
#include "parallel/generate/passes.h"
#include "parallel/plan/partition.h"

namespace concertina {
namespace {

/// Returns the layout's limits: the working ranks, and the units and microbatches to divide.
LayoutLimits working_limits(const Job& job, const Request& request) {
  if (request.frozen_units >= job.units())
    throw_input(fmt::format("freeze.units = {}, but the model has {} units, so no unit would "
                            "train",
                            request.frozen_units, job.units()),
                "freeze.units", fmt::format("freeze.units from 0 to {}", job.units() - 1));
  if (request.spare >= request.world)
    throw_input(fmt::format("parallel.spare = {} of {} leaves no working rank", request.spare,
                            counted(request.world, "rank")),
                "parallel.spare", fmt::format("at most {}", request.world - 1));
  return {.world = request.world - request.spare,
          .units = job.units(),
          .microbatches = job.microbatches * request.batches,
          .leaves = job.leaves * request.batches};
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

/// Returns the requested layout, or the layout of its file or grid.
Layout layout_of(const Request& request, const std::vector<double>& costs,
                 const LayoutLimits& limits) {
  Layout layout = request.layout;
  if (layout.pipelines.empty())
    layout =
        request.file ? file_layout(request, costs, limits) : grid_layout(request, costs, limits);
  validate(layout, limits, request.world);
  layout.frozen_units = request.frozen_units;
  return layout;
}

Plan plan_of(const Request& request, const Layout& layout, const LayoutLimits& limits) {
  const Limits due{.leaf_microbatches = limits.microbatches / limits.leaves};
  return request.file ? run_passes(file_schedule(request), layout, due, request.overlap)
                      : make_plan(layout, request.schedule, due, request.overlap);
}

/// Verifies the exchanges of all buckets with at most kMostHolders holders: the verification
/// takes memory and time quadratic in the number of holders.
void require_exchanges(const Assignment& made) {
  constexpr std::size_t kMostHolders = 1024;
  std::vector<ExchangeShape> proven;
  for (const BucketOwners& owners : made.owners) {
    if (owners.ranks.size() > kMostHolders) continue;
    const ExchangeShape shape = made.exchange.shape(owners.ranks);
    if (std::ranges::find(proven, shape) != proven.end()) continue;
    exchange_rows(made.exchange, owners.ranks);
    proven.push_back(shape);
  }
}

}  // namespace

Assignment assign(const Job& job, const Request& request) {
  const LayoutLimits limits = working_limits(job, request);
  const std::vector<double> costs = balanced_costs(job, request);
  const Layout layout = layout_of(request, costs, limits);
  Plan plan = plan_of(request, layout, limits);
  Assignment made = make_assignment(job, layout, std::move(plan), request.world);
  made.exchange = request.exchange;
  require_exchanges(made);
  return made;
}

Assignment assign_like(const Job& job, const Request& request, Assignment like) {
  if (layout_of(request, balanced_costs(job, request), working_limits(job, request)) != like.layout)
    return assign(job, request);
  like.costs = training_costs(job.model, request.frozen_units);
  return like;
}

int ranks_asked(const Request& request) {
  if (const std::vector<int> working = working_ranks(request.layout); !working.empty())
    return std::max(working.back() + 1, static_cast<int>(working.size()) + request.spare);
  const int rows = request.file ? request.file->ranks() : std::max(1, request.pp);
  return std::max(1, request.dp) * rows + request.spare;
}

Folding folding_of(const Request& request) {
  return folding_of(find_schedule(request.schedule), request.chunks);
}

}  // namespace concertina
