#include "parallel/plan/fit_layout.h"

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "parallel/plan/layout_faults.h"

namespace concertina {
namespace {

void validate_stages(const Pipeline& pipeline, int p, const LayoutLimits& limits, int world) {
  if (pipeline.stages.empty()) throw faults::no_stages(p, limits.units);
  int next = 0;
  for (int s = 0; s < std::ssize(pipeline.stages); ++s) {
    const auto& [rank, first, last] = pipeline.stages[s];
    if (rank < 0 || rank >= world) throw faults::no_such_rank(p, s, rank, world);
    if (last <= first) throw faults::empty_stage(p, s, {first, last});
    if (first != next) throw faults::units_out_of_order(p, s, first, next);
    next = last;
  }
  if (next != limits.units) throw faults::units_missing(p, next, limits.units);
}

void validate_microbatches(const Layout& layout, const LayoutLimits& limits) {
  std::vector<std::pair<int, int>> order;  // first microbatch, pipeline
  for (int p = 0; p < std::ssize(layout.pipelines); ++p)
    order.emplace_back(layout.pipelines[p].first_microbatch, p);
  std::sort(order.begin(), order.end());
  const int leaf = limits.microbatches / limits.leaves;
  int next = 0;
  for (const auto& [first, p] : order) {
    const Pipeline& pipeline = layout.pipelines[p];
    if (pipeline.last_microbatch <= first) throw faults::no_microbatches(pipeline, p);
    if (first != next)
      throw faults::microbatches_out_of_order(pipeline, p, next, limits.microbatches);
    if (pipeline.last_microbatch % leaf != 0) throw faults::leaf_cut(pipeline, p, leaf);
    next = pipeline.last_microbatch;
  }
  if (next != limits.microbatches) throw faults::microbatches_missing(next, limits.microbatches);
}

/// All ranks have a stage but those that are meant to be spare.
void validate_ranks(const Layout& layout, int working, int world) {
  const std::vector<int> used = working_ranks(layout);
  const int count = static_cast<int>(used.size());
  if (count == working) return;
  if (count > working) throw faults::too_many_work(count, working, world);
  int idle = 0;
  while (idle < count && used[static_cast<std::size_t>(idle)] == idle) ++idle;
  throw faults::idle_rank(idle, count, working, world);
}

}  // namespace

std::vector<Grid> fitting_grids(const LayoutLimits& limits, Folding folding) {
  std::vector<Grid> grids;
  for (int pp = 1; pp <= limits.world; ++pp)
    if (limits.world % pp == 0 && pp % folding.rank_step == 0 &&
        pp * folding.chunks <= limits.units &&
        limits.world / pp * folding.pipelines() <= limits.leaves)
      grids.push_back({pp, limits.world / pp});
  return grids;
}

Grid fit(const LayoutLimits& limits, std::optional<int> pp, std::optional<int> dp,
         Folding folding) {
  for (const Grid& grid : fitting_grids(limits, folding))
    if (pp.value_or(grid.pp) == grid.pp && dp.value_or(grid.dp) == grid.dp) return grid;
  throw faults::no_such_grid(limits, pp, dp, folding);
}

void validate(const Layout& layout, const LayoutLimits& limits, int world) {
  CONCERTINA_CHECK(limits.leaves > 0 && limits.microbatches % limits.leaves == 0,
                   "{} leaves of {} microbatches", limits.leaves, limits.microbatches);
  if (world == 0) world = limits.world;
  if (layout.pipelines.empty()) throw faults::no_pipelines();
  for (int p = 0; p < std::ssize(layout.pipelines); ++p)
    validate_stages(layout.pipelines[p], p, limits, world);
  validate_microbatches(layout, limits);
  validate_ranks(layout, limits.world, world);
}

}  // namespace concertina
