#include "parallel/plan/fit_layout.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "core/error.h"
#include "core/text/number_text.h"

namespace concertina {
namespace {

constexpr const char* kKey = "parallel.layout";

void validate_stages(const Pipeline& pipeline, int p, const LayoutLimits& limits, int world) {
  if (pipeline.stages.empty())
    throw_input(fmt::format("pipeline {} has no stages", p), kKey,
                fmt::format("stages that cover units [0, {})", limits.units));
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
      refuse(fmt::format("units start at {}, but the previous stages end at {}", first, next),
             "every unit exactly once and in order in each pipeline");
    next = last;
  }
  if (next != limits.units)
    throw_input(fmt::format("the stages cover units [0, {}), but the model has {}", next,
                            counted(limits.units, "unit")),
                fmt::format("{}, pipeline {}", kKey, p),
                fmt::format("the last stage ends at {}", limits.units));
}

std::string each_once(int microbatches) {
  return fmt::format("each of the {} microbatches exactly once", microbatches);
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
      refuse(range() + " split a leaf of the gradient sum",
             fmt::format("multiples of {}, or another numerics.leaves", leaf));
    next = last;
  }
  if (next != limits.microbatches)
    throw_input(fmt::format("the pipelines cover microbatches [0, {})", next), kKey,
                each_once(limits.microbatches));
}

/// Checks that all ranks except the intended spare ones have a stage.
void validate_ranks(const Layout& layout, int working, int world) {
  const std::vector<int> used = working_ranks(layout);
  const int count = static_cast<int>(used.size());
  if (count == working) return;
  if (count > working)
    throw_input(fmt::format("{} have a stage, but {} of {} ranks should be spare",
                            counted(count, "rank"), world - working, world),
                "parallel.spare", fmt::format("parallel.spare = {}", world - count));
  int idle = 0;
  while (idle < count && used[static_cast<std::size_t>(idle)] == idle) ++idle;
  throw_input(fmt::format("rank {} has no stage", idle), kKey,
              fmt::format("a stage for each of {}, fewer ranks, or parallel.spare = {}",
                          counted(working, "rank"), world - count));
}

/// Returns the grids that fit or, if there are none, the rule and the grids for fewer ranks.
std::string grids_that_fit(const LayoutLimits& limits, const Folding& folding) {
  LayoutLimits nearest = limits;
  std::vector<Grid> grids = fitting_grids(nearest, folding);
  while (grids.empty() && --nearest.world > 0) grids = fitting_grids(nearest, folding);
  std::vector<std::string> names;
  for (const Grid& grid : grids) names.push_back(fmt::format("pp={} dp={}", grid.pp, grid.dp));
  const std::string others =
      fmt::format("on {}, one of: {}", counted(nearest.world, "rank"), fmt::join(names, ", "));
  if (nearest.world == limits.world) return others;
  std::string rule = fmt::format(
      "pp x dp = ranks, with at most {} (the model's units) and at most {} (numerics.leaves)",
      counted(limits.units / folding.chunks, "stage"),
      counted(limits.leaves / folding.pipelines(), "replica"));
  if (folding.rank_step > 1)
    rule += fmt::format(", pp a multiple of {} (the schedule)", folding.rank_step);
  return grids.empty() ? rule : rule + "; " + others;
}

/// Returns advice on how many leaves let `pipelines` pipelines share the gradient sum.
std::string leaves_advice(const LayoutLimits& limits, int pipelines) {
  int leaves = limits.microbatches;
  for (int divisor = limits.microbatches; divisor >= pipelines; --divisor)
    if (limits.microbatches % divisor == 0 && (divisor % pipelines == 0 || leaves % pipelines != 0))
      leaves = divisor;
  if (leaves < pipelines)
    return fmt::format("batch.microbatches = {} or a multiple, and numerics.leaves = {}", pipelines,
                       pipelines);
  return fmt::format("numerics.leaves = {}, which rounds the gradient sum differently than {}",
                     leaves, limits.leaves);
}

/// `from` is the number of stages from which the number of replicas was derived, if any.
[[noreturn]] void refuse_leaves(const LayoutLimits& limits, const Folding& folding, int replicas,
                                std::optional<int> from, const std::string& others) {
  const int pipelines = replicas * folding.pipelines();
  throw_input(
      fmt::format(
          "{}{}{}, but the gradient sum has {} of {} (numerics.leaves)",
          from ? fmt::format("pp = {} on {} is ", *from, counted(limits.world, "rank")) : "",
          counted(pipelines, folding.pipelines() == 1 ? "replica" : "pipeline"),
          folding.pipelines() == 1 ? "" : " (two per replica)", counted(limits.leaves, "leaf"),
          counted(limits.microbatches / limits.leaves, "microbatch")),
      from ? "parallel.pp" : "parallel.dp",
      fmt::format("{}; or {}", leaves_advice(limits, pipelines), others));
}

/// Throws an error with the first reason why no grid within `limits` has `pp` stages and `dp`
/// replicas, and with the grids that fit.
[[noreturn]] void refuse_grid(const LayoutLimits& limits, std::optional<int> pp,
                              std::optional<int> dp, const Folding& folding) {
  const std::string others = grids_that_fit(limits, folding);
  if (limits.leaves < folding.pipelines())
    throw_input("two opposite pipelines cannot share a single leaf of the gradient sum",
                "batch.microbatches, numerics.leaves",
                "at least two leaves, each of one or more microbatches");
  if (const std::int64_t stages = std::int64_t{pp.value_or(0)} * folding.chunks;
      stages > limits.units)
    throw_input(fmt::format("{}, but the model has {}", counted(stages, "stage"),
                            counted(limits.units, "unit")),
                "parallel.pp", others);
  if (pp && *pp % folding.rank_step != 0)
    throw_input(fmt::format("the schedule cannot run on {}", counted(*pp, "rank")), "parallel.pp",
                others);
  const bool divides = pp && !dp && *pp > 0 && limits.world % *pp == 0;
  const int replicas = divides ? limits.world / *pp : dp.value_or(1);
  if (replicas * folding.pipelines() > limits.leaves)
    refuse_leaves(limits, folding, replicas, divides ? pp : std::nullopt, others);
  std::string asked = pp ? fmt::format(" with pp = {}", *pp) : "";
  if (dp) asked += fmt::format(" {} dp = {}", pp ? "and" : "with", *dp);
  throw_input(fmt::format("no layout{} fits {}", asked, counted(limits.world, "rank")),
              "parallel.pp, parallel.dp", others);
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
  refuse_grid(limits, pp, dp, folding);
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
