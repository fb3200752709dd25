#include "parallel/plan/layout_faults.h"

#include <fmt/ranges.h>

#include "core/text/number_text.h"

namespace concertina::faults {
namespace {

constexpr const char *kLayoutKey = "parallel.layout", *kScheduleKey = "parallel.schedule";

Error fault(std::string what, std::string where, std::string fix) {
  return {Exit::bad_input, std::move(what), std::move(where), std::move(fix)};
}

/// The grids that fit as many ranks, or else the most ranks below that any grid fits, and the rule.
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

/// Leaves that let `pipelines` pipelines share the gradient sum.
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

/// `from`: how many replicas there are follows from this.
Error too_few_leaves(const LayoutLimits& limits, const Folding& folding, int replicas,
                     std::optional<int> from, const std::string& others) {
  const int pipelines = replicas * folding.pipelines();
  return fault(
      fmt::format(
          "{}{}{}, but the gradient sum has {} of {} (numerics.leaves)",
          from ? fmt::format("pp = {} on {} is ", *from, counted(limits.world, "rank")) : "",
          counted(pipelines, folding.pipelines() == 1 ? "replica" : "pipeline"),
          folding.pipelines() == 1 ? "" : " (two per replica)", counted(limits.leaves, "leaf"),
          counted(limits.microbatches / limits.leaves, "microbatch")),
      from ? "parallel.pp" : "parallel.dp",
      fmt::format("{}; or {}", leaves_advice(limits, pipelines), others));
}

}  // namespace

Error nothing_trains(int frozen, int units) {
  return fault(
      fmt::format("freeze.units = {}, but the model has {} units: nothing is left to train", frozen,
                  units),
      "freeze.units", fmt::format("freeze.units from 0 to {}", units - 1));
}

Error nobody_works(int spare, int world) {
  return fault(
      fmt::format("parallel.spare = {} of {}: none is left to work", spare, counted(world, "rank")),
      "parallel.spare", fmt::format("at most {}", world - 1));
}

Error no_such_grid(const LayoutLimits& limits, std::optional<int> pp, std::optional<int> dp,
                   const Folding& folding) {
  const std::string others = grids_that_fit(limits, folding);
  if (limits.leaves < folding.pipelines())
    return fault("two opposite pipelines cannot share the only leaf of the gradient sum",
                 "batch.microbatches, numerics.leaves",
                 "at least two leaves, of a microbatch or more");
  if (pp && *pp * folding.chunks > limits.units)
    return fault(fmt::format("{}, but the model has {}", counted(*pp * folding.chunks, "stage"),
                             counted(limits.units, "unit")),
                 "parallel.pp", others);
  if (pp && *pp % folding.rank_step != 0)
    return fault(fmt::format("the schedule cannot run on {}", counted(*pp, "rank")), "parallel.pp",
                 others);
  const bool divides = pp && !dp && *pp > 0 && limits.world % *pp == 0;
  const int replicas = divides ? limits.world / *pp : dp.value_or(1);
  if (replicas * folding.pipelines() > limits.leaves)
    return too_few_leaves(limits, folding, replicas, divides ? pp : std::nullopt, others);
  std::string asked = pp ? fmt::format(" with pp = {}", *pp) : "";
  if (dp) asked += fmt::format(" {} dp = {}", pp ? "and" : "with", *dp);
  return fault(fmt::format("no layout{} fits {}", asked, counted(limits.world, "rank")),
               "parallel.pp, parallel.dp", others);
}

Error no_form_with_chunks(std::string_view schedule, int chunks, const std::string& rule) {
  return fault(
      fmt::format("the schedule '{}' cannot run with {}", schedule, counted(chunks, "chunk")),
      "parallel.chunks", fmt::format("chunks per rank: {}; or leave it out", rule));
}

Error no_form_on_layout(std::string_view schedule, const std::string& needs) {
  return fault(fmt::format("the schedule '{}' cannot run on this layout", schedule), kLayoutKey,
               fmt::format("{}; or leave it out: parallel.pp, dp and chunks make the layout that "
                           "the schedule needs; or 1f1b or gpipe, which run on any",
                           needs));
}

Error too_many_actions(std::int64_t actions, std::size_t most) {
  return fault(
      fmt::format("the schedule can have {} actions, at most {} are possible", actions, most),
      kScheduleKey, "fewer ranks, microbatches or chunks");
}

Error rows_do_not_divide(const std::string& path, int rows, int world) {
  return fault(fmt::format("{} is a schedule for {}, the run has {}", path, counted(rows, "rank"),
                           counted(world, "rank")),
               kScheduleKey,
               fmt::format("{}, or a multiple of it for several replicas", counted(rows, "rank")));
}

Error file_decides(const std::string& path, const std::string& key, int given, int is) {
  return fault(fmt::format("{} = {}, but {} makes it {}", key, given, path, is), key,
               fmt::format("leave out {}", key));
}

Error other_microbatches(const std::string& path, int own, int of_step, int replicas) {
  return fault(fmt::format("{} has {} per replica; a step has {} for {}", path,
                           counted(own, "microbatch"), of_step, counted(replicas, "replica")),
               "batch.microbatches", fmt::format("batch.microbatches = {}", replicas * own));
}

Error too_few_units(const std::string& path, int stages, int units) {
  return fault(fmt::format("{} has pipelines of {}, the model has {}", path,
                           counted(stages, "stage"), counted(units, "unit")),
               kScheduleKey, "fewer stages, or a model with more layers");
}

}  // namespace concertina::faults
