#include "experiments/study/scaling.h"

#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "core/error.h"
#include "experiments/config/config_keys.h"
#include "experiments/config/config_toml.h"

namespace concertina {
namespace {

[[noreturn]] void refuse_ranks(int ranks, const std::string& why, const std::string& fix) {
  throw_input(fmt::format("{} ranks: {}", ranks, why), "--ranks", fix);
}

/// pp and dp for a number of ranks; the one that does not grow is taken from the config.
ScalingPoint grid_of(const RunConfig& config, const ScalingOptions& options, int ranks) {
  const ParallelSection& parallel = config.parallel;
  const int fixed = std::max(1, options.grows_pipeline ? parallel.dp : parallel.pp);
  if (ranks % fixed != 0)
    refuse_ranks(ranks,
                 fmt::format("not a multiple of parallel.{} = {}",
                             options.grows_pipeline ? "dp" : "pp", fixed),
                 "other numbers of ranks, or other values of parallel.pp and parallel.dp");
  ScalingPoint point{.ranks = ranks, .pp = fixed, .dp = ranks / fixed};
  if (options.grows_pipeline) std::swap(point.pp, point.dp);
  return point;
}

/// Keeps the samples per microbatch and changes the number of microbatches.
ScalingPoint with_microbatches(const RunConfig& config, ScalingPoint point, int microbatches) {
  point.microbatches = microbatches;
  point.global = config.batch.global / config.batch.microbatches * microbatches;
  return point;
}

/// Whether the study itself sets the key, which varies or locates a run.
bool is_own(std::string_view key) {
  constexpr std::string_view kVaried[] = {"run.seed", "parallel.pp", "parallel.dp", "batch.global",
                                          "batch.microbatches"};
  return is_studys_own(key) || std::ranges::find(kVaried, key) != std::end(kVaried);
}

template <class Value>
std::string list_of(const std::vector<ScalingPoint>& points, Value value) {
  std::vector<int> values;
  for (const ScalingPoint& point : points) values.push_back(value(point));
  return fmt::format("[{}]", fmt::join(values, ", "));
}

}  // namespace

std::vector<ScalingPoint> scaling_points(const RunConfig& config, const ScalingOptions& options) {
  std::vector<int> counts = {config.batch.microbatches};
  for (const int count : options.microbatches)
    if (count != config.batch.microbatches) counts.push_back(count);
  std::vector<ScalingPoint> points;
  for (const int ranks : options.ranks) {
    const ScalingPoint grid = grid_of(config, options, ranks);
    const int grown = options.weak ? ranks / options.ranks.front() : 1;
    if (options.weak && ranks % options.ranks.front() != 0)
      refuse_ranks(
          ranks, "the batch cannot grow in proportion",
          fmt::format("multiples of {}, the smallest number of ranks", options.ranks.front()));
    for (const int count : counts) points.push_back(with_microbatches(config, grid, count * grown));
  }
  return points;
}

RunConfig config_at(RunConfig config, const ScalingPoint& point) {
  config.parallel.pp = point.pp;
  config.parallel.dp = point.dp;
  config.batch.global = point.global;
  config.batch.microbatches = point.microbatches;
  return config;
}

std::string scaling_toml(const RunConfig& config, const ScalingOptions& options) {
  std::vector<ScalingPoint> points = scaling_points(config, options);
  std::erase_if(points, [&](const ScalingPoint& point) { return point.ranks > options.measured; });
  // Each round has a seed, which changes what is trained but not the work of a step. Rounds are
  // interleaved.
  std::vector<int> rounds(static_cast<std::size_t>(options.rounds));
  std::iota(rounds.begin(), rounds.end(), 1);
  std::string text =
      fmt::format("name = {}\nseeds = [{}]\n", to_toml(options.name), fmt::join(rounds, ", "));
  std::string section;
  for (const Key& key : config_keys()) {
    if (!applies(key, config) || is_default(key, config) || is_own(key.name)) continue;
    if (key.section() != section) {
      section = key.section();
      text += fmt::format("\n[set.{}]\n", section);
    }
    text += fmt::format("{} = {}\n", key.within(), value_text(key, config));
  }
  text += fmt::format(
      "\n[[zip]]\nranks = {}\nparallel.pp = {}\nparallel.dp = {}\nbatch.global = "
      "{}\nbatch.microbatches = {}\n",
      list_of(points, [](const ScalingPoint& p) { return p.ranks; }),
      list_of(points, [](const ScalingPoint& p) { return p.pp; }),
      list_of(points, [](const ScalingPoint& p) { return p.dp; }),
      list_of(points, [](const ScalingPoint& p) { return p.global; }),
      list_of(points, [](const ScalingPoint& p) { return p.microbatches; }));
  return text;
}

}  // namespace concertina
