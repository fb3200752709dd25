#include "parallel/plan/layout.h"

#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "core/error.h"

namespace concertina {

int Layout::first_stage(int pipeline) const {
  int first = 0;
  for (int p = 0; p < pipeline; ++p) first += static_cast<int>(pipelines[p].stages.size());
  return first;
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

std::vector<StagePlacement> Layout::stages() const {
  std::vector<StagePlacement> all;
  for (const Pipeline& pipeline : pipelines)
    all.insert(all.end(), pipeline.stages.begin(), pipeline.stages.end());
  return all;
}

std::vector<int> Layout::holders(const std::vector<int>& units) const {
  std::vector<int> ranks;
  for (const StagePlacement& stage : stages())
    for (const int unit : units)
      if (unit >= stage.first_unit && unit < stage.last_unit) ranks.push_back(stage.rank);
  std::ranges::sort(ranks);
  ranks.erase(std::ranges::unique(ranks).begin(), ranks.end());
  return ranks;
}

std::vector<int> working_ranks(const Layout& layout) {
  std::set<int> ranks;
  for (const StagePlacement& stage : layout.stages()) ranks.insert(stage.rank);
  return {ranks.begin(), ranks.end()};
}

int rank_count(const Layout& layout) {
  const std::vector<int> working = working_ranks(layout);
  return working.empty() ? 0 : working.back() + 1;
}

std::string short_form(const Layout& layout) {
  std::set<std::vector<int>> replicas;  // ranks of each replica; two opposite pipelines are one
  for (const Pipeline& pipeline : layout.pipelines) replicas.insert(working_ranks({{pipeline}}));
  std::vector<std::size_t> depths;
  for (const std::vector<int>& ranks : replicas) depths.push_back(ranks.size());
  if (std::all_of(depths.begin(), depths.end(), [&](std::size_t d) { return d == depths[0]; }))
    return fmt::format("pp{}xdp{}", depths[0], depths.size());
  return fmt::format("{}", fmt::join(depths, "+"));
}

int rank_of_stage(Placement placement, int stage, int p, bool back) {
  const int within = stage % p;
  const bool turned = back || (placement == Placement::wave && stage / p % 2 == 1);
  return turned ? p - 1 - within : within;
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
    for (int s = 0; s < std::ssize(partition); ++s)
      pipeline.stages.push_back({first_rank + rank_of_stage(folding.placement, s, grid.pp, back),
                                 partition[s].first, partition[s].last});
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
