#include "parallel/plan/fit_layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/text/number_text.h"
#include "parallel/plan/layout_faults.h"

namespace concertina {
namespace {

constexpr const char* kKey = "parallel.layout";

void validate_stages(const Pipeline& pipeline, int p, const LayoutLimits& limits, int world) {
  if (pipeline.stages.empty())
    throw_input(fmt::format("pipeline {} has no stages", p), kKey,
                fmt::format("stages that hold units [0, {})", limits.units));
  int next = 0;
  for (int s = 0; s < std::ssize(pipeline.stages); ++s) {
    const auto& [rank, first, last] = pipeline.stages[s];
    const auto refuse = [&](std::string what, std::string fix) {
      throw_input(std::move(what), fmt::format("{}, pipeline {}, stage {}", kKey, p, s),
                  std::move(fix));
    };
    if (rank < 0 || rank >= world)
      refuse(fmt::format("rank {} does not exist", rank), fmt::format("a rank in [0, {})", world));
    if (last <= first)
      refuse(fmt::format("the stage is empty: units [{}, {})", first, last),
             "at least one unit per stage");
    if (first != next)
      refuse(fmt::format("units start at {}, but the stages before end at {}", first, next),
             "every unit once and in order in each pipeline");
    next = last;
  }
  if (next != limits.units)
    throw_input(fmt::format("the stages hold units [0, {}), but the model has {}", next,
                            counted(limits.units, "unit")),
                fmt::format("{}, pipeline {}", kKey, p),
                fmt::format("the last stage ends at {}", limits.units));
}

std::string each_once(int microbatches) {
  return fmt::format("each of the {} microbatches once", microbatches);
}

void validate_microbatches(const Layout& layout, const LayoutLimits& limits) {
  std::vector<std::pair<int, int>> order;  // first microbatch, pipeline
  for (int p = 0; p < std::ssize(layout.pipelines); ++p)
    order.emplace_back(layout.pipelines[p].first_microbatch, p);
  std::sort(order.begin(), order.end());
  const int leaf = limits.microbatches / limits.leaves;
  int next = 0;
  for (const auto& entry : order) {
    const int first = entry.first, p = entry.second;
    const int last = layout.pipelines[p].last_microbatch;
    const auto range = [first, last] { return fmt::format("microbatches [{}, {})", first, last); };
    const auto refuse = [p](std::string what, std::string fix) {
      throw_input(std::move(what), fmt::format("{}, pipeline {}", kKey, p), std::move(fix));
    };
    if (last <= first)
      refuse("the pipeline is empty: " + range(), "at least one microbatch per pipeline");
    if (first != next)
      refuse(fmt::format("{}, expected to start at {}", range(), next),
             each_once(limits.microbatches));
    if (last % leaf != 0)
      refuse(range() + " cut a leaf of the gradient sum in two",
             fmt::format("multiples of {}, or another numerics.leaves", leaf));
    next = last;
  }
  if (next != limits.microbatches)
    throw_input(fmt::format("the pipelines hold microbatches [0, {})", next), kKey,
                each_once(limits.microbatches));
}

/// All ranks have a stage but those that are meant to be spare.
void validate_ranks(const Layout& layout, int working, int world) {
  const std::vector<int> used = working_ranks(layout);
  const int count = static_cast<int>(used.size());
  if (count == working) return;
  if (count > working)
    throw_input(fmt::format("{} work, {} of {} are to be spare", counted(count, "rank"),
                            world - working, world),
                "parallel.spare", fmt::format("parallel.spare = {}", world - count));
  int idle = 0;
  while (idle < count && used[static_cast<std::size_t>(idle)] == idle) ++idle;
  throw_input(fmt::format("rank {} has no stage", idle), kKey,
              fmt::format("a stage for every one of {}, fewer ranks, or parallel.spare = {}",
                          counted(working, "rank"), world - count));
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
  if (layout.pipelines.empty())
    throw_input("the layout has no pipelines", kKey, "a list of pipelines");
  for (int p = 0; p < std::ssize(layout.pipelines); ++p)
    validate_stages(layout.pipelines[p], p, limits, world);
  validate_microbatches(layout, limits);
  validate_ranks(layout, limits.world, world);
}

}  // namespace concertina
