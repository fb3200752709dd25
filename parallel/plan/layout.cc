#include "parallel/plan/layout.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/number_text.h"

namespace concertina {
namespace {

constexpr const char* kKey = "parallel.layout";

std::string place(int pipeline, int stage) {
  return fmt::format("{}, pipeline {}, stage {}", kKey, pipeline, stage);
}

void validate_stages(const Pipeline& pipeline, int number, const LayoutLimits& limits, int world) {
  if (pipeline.stages.empty())
    throw_input(fmt::format("pipeline {} has no stages", number), kKey,
                fmt::format("stages that hold units [0, {})", limits.units));
  int next = 0;
  for (int s = 0; s < static_cast<int>(pipeline.stages.size()); ++s) {
    const StagePlacement& stage = pipeline.stages[s];
    if (stage.rank < 0 || stage.rank >= world)
      throw_input(fmt::format("rank {} does not exist", stage.rank), place(number, s),
                  fmt::format("a rank in [0, {})", world));
    if (stage.last_unit <= stage.first_unit)
      throw_input(
          fmt::format("the stage is empty: units [{}, {})", stage.first_unit, stage.last_unit),
          place(number, s), "at least one unit per stage");
    if (stage.first_unit != next)
      throw_input(
          fmt::format("units start at {}, but the stages before end at {}", stage.first_unit, next),
          place(number, s), "every unit once and in order in each pipeline");
    next = stage.last_unit;
  }
  if (next != limits.units)
    throw_input(fmt::format("the stages hold units [0, {}), but the model has {}", next,
                            counted(limits.units, "unit")),
                fmt::format("{}, pipeline {}", kKey, number),
                fmt::format("the last stage ends at {}", limits.units));
}

void validate_microbatches(const Layout& layout, const LayoutLimits& limits) {
  std::vector<int> order(layout.pipelines.size());
  for (int p = 0; p < static_cast<int>(order.size()); ++p) order[p] = p;
  std::sort(order.begin(), order.end(), [&](int a, int b) {
    return layout.pipelines[a].first_microbatch < layout.pipelines[b].first_microbatch;
  });
  const int leaf = limits.microbatches / limits.leaves;
  int next = 0;
  for (const int p : order) {
    const Pipeline& pipeline = layout.pipelines[p];
    const std::string range =
        fmt::format("[{}, {})", pipeline.first_microbatch, pipeline.last_microbatch);
    const std::string where = fmt::format("{}, pipeline {}", kKey, p);
    if (pipeline.microbatches() < 1)
      throw_input(fmt::format("the pipeline is empty: microbatches {}", range), where,
                  "at least one microbatch per pipeline");
    if (pipeline.first_microbatch != next)
      throw_input(fmt::format("microbatches {}, expected to start at {}", range, next), where,
                  fmt::format("each of the {} microbatches once", limits.microbatches));
    if (pipeline.last_microbatch % leaf != 0)
      throw_input(fmt::format("microbatches {} cut a leaf of the gradient sum in two", range),
                  where, fmt::format("multiples of {}, or another numerics.leaves", leaf));
    next = pipeline.last_microbatch;
  }
  if (next != limits.microbatches)
    throw_input(fmt::format("the pipelines hold microbatches [0, {})", next), kKey,
                fmt::format("each of the {} microbatches once", limits.microbatches));
}

std::string list(const std::vector<Grid>& grids) {
  std::vector<std::string> names;
  for (const Grid& grid : grids) names.push_back(fmt::format("pp={} dp={}", grid.pp, grid.dp));
  return fmt::format("{}", fmt::join(names, ", "));
}

/// What would be right where `fit` found nothing.
std::string advice(LayoutLimits limits, Folding folding) {
  const std::vector<Grid> grids = fitting_grids(limits, folding);
  if (!grids.empty())
    return fmt::format("on {}, one of: {}", counted(limits.world, "rank"), list(grids));
  std::string rule = fmt::format(
      "pp x dp = ranks, with at most {} (the model's units) and at most {} (numerics.leaves)",
      counted(limits.units / folding.chunks, "stage"),
      counted(limits.leaves / folding.pipelines(), "replica"));
  if (folding.rank_step > 1)
    rule += fmt::format(", pp a multiple of {} (the schedule)", folding.rank_step);
  for (--limits.world; limits.world > 0; --limits.world) {
    const std::vector<Grid> nearest = fitting_grids(limits, folding);
    if (!nearest.empty())
      return fmt::format("{}; on {}, one of: {}", rule, counted(limits.world, "rank"),
                         list(nearest));
  }
  return rule;
}

/// What lets `pipelines` pipelines share the gradient sum.
std::string leaves_advice(const LayoutLimits& limits, int pipelines) {
  int leaves = limits.microbatches;
  for (int divisor = limits.microbatches; divisor >= pipelines; --divisor)
    if (limits.microbatches % divisor == 0 && (divisor % pipelines == 0 || leaves % pipelines != 0))
      leaves = divisor;
  if (leaves < pipelines)
    return fmt::format("batch.microbatches = {} or a multiple, and numerics.leaves = {}", pipelines,
                       pipelines);
  return fmt::format("numerics.leaves = {}, which rounds the gradient sum in another order than {}",
                     leaves, limits.leaves);
}

/// " with pp = 3", " with pp = 3 and dp = 2", or "" where the world size decides both.
std::string asked(std::optional<int> pp, std::optional<int> dp) {
  if (!pp && !dp) return "";
  if (!dp) return fmt::format(" with pp = {}", *pp);
  if (!pp) return fmt::format(" with dp = {}", *dp);
  return fmt::format(" with pp = {} and dp = {}", *pp, *dp);
}

}  // namespace

int Layout::first_stage(int pipeline) const {
  int first = 0;
  for (int p = 0; p < pipeline; ++p) first += static_cast<int>(pipelines[p].stages.size());
  return first;
}

int Layout::stage_count() const {
  return first_stage(static_cast<int>(pipelines.size()));
}

int Layout::unit_count() const {
  return pipelines.front().stages.back().last_unit;
}

int Layout::pipeline_of(int stage) const {
  CONCERTINA_CHECK(stage >= 0 && stage < stage_count(), "stage {} of {}", stage, stage_count());
  int pipeline = 0;
  for (; stage >= static_cast<int>(pipelines[pipeline].stages.size()); ++pipeline)
    stage -= static_cast<int>(pipelines[pipeline].stages.size());
  return pipeline;
}

const StagePlacement& Layout::stage(int stage) const {
  const int pipeline = pipeline_of(stage);
  return pipelines[pipeline].stages[stage - first_stage(pipeline)];
}

std::vector<int> Layout::holders(const std::vector<int>& units) const {
  std::set<int> ranks;
  for (const Pipeline& pipeline : pipelines)
    for (const StagePlacement& stage : pipeline.stages)
      for (const int unit : units)
        if (unit >= stage.first_unit && unit < stage.last_unit) ranks.insert(stage.rank);
  return {ranks.begin(), ranks.end()};
}

namespace {

std::set<int> ranks_of(const Layout& layout) {
  std::set<int> ranks;
  for (const Pipeline& pipeline : layout.pipelines)
    for (const StagePlacement& stage : pipeline.stages) ranks.insert(stage.rank);
  return ranks;
}

/// All ranks have a stage but those that are meant to be spare.
void validate_ranks(const Layout& layout, int working, int world) {
  const std::set<int> used = ranks_of(layout);
  if (std::cmp_equal(used.size(), working)) return;
  int idle = 0;
  while (used.contains(idle)) ++idle;
  if (std::cmp_greater(used.size(), working))
    throw_input(fmt::format("{} work, {} of {} are to be spare", counted(std::ssize(used), "rank"),
                            world - working, world),
                "parallel.spare",
                fmt::format("parallel.spare = {}", world - static_cast<int>(used.size())));
  throw_input(fmt::format("rank {} has no stage", idle), kKey,
              fmt::format("a stage for every one of {}, fewer ranks, or parallel.spare = {}",
                          counted(working, "rank"), world - static_cast<int>(used.size())));
}

}  // namespace

std::vector<int> working_ranks(const Layout& layout) {
  const std::set<int> ranks = ranks_of(layout);
  return {ranks.begin(), ranks.end()};
}

std::string short_form(const Layout& layout) {
  std::set<std::set<int>> replicas;  // the ranks of each; two opposite pipelines are one
  for (const Pipeline& pipeline : layout.pipelines) replicas.insert(ranks_of({{pipeline}}));
  std::vector<std::size_t> depths;
  for (const std::set<int>& ranks : replicas) depths.push_back(ranks.size());
  if (std::all_of(depths.begin(), depths.end(), [&](std::size_t d) { return d == depths[0]; }))
    return fmt::format("pp{}xdp{}", depths[0], depths.size());
  return fmt::format("{}", fmt::join(depths, "+"));
}

void validate(const Layout& layout, const LayoutLimits& limits, int world) {
  CONCERTINA_CHECK(limits.leaves > 0 && limits.microbatches % limits.leaves == 0,
                   "{} leaves of {} microbatches", limits.leaves, limits.microbatches);
  if (world == 0) world = limits.world;
  if (layout.pipelines.empty())
    throw_input("the layout has no pipelines", kKey, "a list of pipelines");
  for (int p = 0; p < static_cast<int>(layout.pipelines.size()); ++p)
    validate_stages(layout.pipelines[p], p, limits, world);
  validate_microbatches(layout, limits);
  validate_ranks(layout, limits.world, world);
}

int rank_of_stage(Placement placement, int stage, int p) {
  const int within = stage % p;
  return placement == Placement::wave && stage / p % 2 == 1 ? p - 1 - within : within;
}

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
  if (limits.leaves < folding.pipelines())
    throw_input("two opposite pipelines cannot share the only leaf of the gradient sum",
                "batch.microbatches, numerics.leaves",
                "at least two leaves, of a microbatch or more");
  if (pp && *pp * folding.chunks > limits.units)
    throw_input(fmt::format("{}, but the model has {}", counted(*pp * folding.chunks, "stage"),
                            counted(limits.units, "unit")),
                "parallel.pp", advice(limits, folding));
  if (pp && *pp % folding.rank_step != 0)
    throw_input(fmt::format("the schedule has no form for {}", counted(*pp, "rank")), "parallel.pp",
                advice(limits, folding));
  const bool divides = pp && !dp && *pp > 0 && limits.world % *pp == 0;
  const int replicas = divides ? limits.world / *pp : dp.value_or(1);
  if (const int pipelines = replicas * folding.pipelines(); pipelines > limits.leaves)
    throw_input(
        fmt::format(
            "{}{}{}, but the gradient sum has {} of {} (numerics.leaves)",
            divides ? fmt::format("pp = {} on {} is ", *pp, counted(limits.world, "rank")) : "",
            counted(pipelines, folding.pipelines() == 1 ? "replica" : "pipeline"),
            folding.pipelines() == 1 ? "" : " (two per replica)", counted(limits.leaves, "leaf"),
            counted(limits.microbatches / limits.leaves, "microbatch")),
        divides ? "parallel.pp" : "parallel.dp",
        fmt::format("{}; or {}", leaves_advice(limits, pipelines), advice(limits, folding)));
  for (const Grid& grid : fitting_grids(limits, folding))
    if ((!pp || *pp == grid.pp) && (!dp || *dp == grid.dp)) return grid;
  throw_input(fmt::format("no layout{} fits {}", asked(pp, dp), counted(limits.world, "rank")),
              "parallel.pp, parallel.dp", advice(limits, folding));
}

Layout make_layout(const std::vector<UnitRange>& partition, Grid grid, int microbatches, int leaves,
                   Folding folding) {
  const int chunks = folding.chunks, pipelines = grid.dp * folding.pipelines();
  CONCERTINA_CHECK(grid.pp > 0 && grid.dp > 0 && chunks > 0 && leaves > 0,
                   "pp={} dp={} chunks={} leaves={}", grid.pp, grid.dp, chunks, leaves);
  CONCERTINA_CHECK(static_cast<int>(partition.size()) == grid.pp * chunks,
                   "{} ranges for {} ranks of {} stages", partition.size(), grid.pp, chunks);
  CONCERTINA_CHECK(microbatches % leaves == 0, "{} leaves of {} microbatches", leaves,
                   microbatches);
  const int leaf = microbatches / leaves;
  Layout layout;
  for (int number = 0; number < pipelines; ++number) {
    const int first_rank = number / folding.pipelines() * grid.pp;
    const bool back = number % folding.pipelines() == 1;
    Pipeline pipeline;
    for (int s = 0; s < static_cast<int>(partition.size()); ++s) {
      const int rank = rank_of_stage(folding.placement, s, grid.pp);
      pipeline.stages.push_back(
          {first_rank + (back ? grid.pp - 1 - rank : rank), partition[s].first, partition[s].last});
    }
    pipeline.first_microbatch = number * leaves / pipelines * leaf;
    pipeline.last_microbatch = (number + 1) * leaves / pipelines * leaf;
    layout.pipelines.push_back(std::move(pipeline));
  }
  return layout;
}

std::string to_toml(const Layout& layout) {
  std::vector<std::string> pipelines;
  for (const Pipeline& pipeline : layout.pipelines) {
    std::vector<std::string> stages;
    for (const StagePlacement& stage : pipeline.stages)
      stages.push_back(fmt::format("{{rank = {}, units = [{}, {}]}}", stage.rank, stage.first_unit,
                                   stage.last_unit));
    pipelines.push_back(fmt::format("  {{microbatches = [{}, {}], stages = [{}]}}",
                                    pipeline.first_microbatch, pipeline.last_microbatch,
                                    fmt::join(stages, ", ")));
  }
  return fmt::format("[\n{}\n]", fmt::join(pipelines, ",\n"));
}

}  // namespace concertina
