#include <algorithm>

#include "experiments/study/scaling.h"
#include "io/figure/chart.h"

namespace concertina {
namespace {

/// The first result of each number of ranks: that with the config's own microbatches.
std::vector<const ScalingResult*> by_ranks(const std::vector<ScalingResult>& results) {
  std::vector<const ScalingResult*> points;
  for (const ScalingResult& result : results)
    if (points.empty() || points.back()->point.ranks != result.point.ranks)
      points.push_back(&result);
  return points;
}

double samples_per_s(const ScalingResult& result, double seconds) {
  return result.point.global / seconds;
}

/// Milliseconds that all ranks spend on a sample, by what they do: what stays level where the ranks
/// scale perfectly, be the scaling strong or weak.
StackedBar bar_of(const StepParts& parts, const ScalingResult& result, bool pale) {
  const double factor = 1e3 * result.point.ranks / result.point.global;
  StackedBar bar{{parts.compute, parts.bubble, parts.imbalance, parts.transfer, parts.reduction,
                  parts.update, parts.variation, parts.cores},
                 pale};
  for (double& value : bar.values) value *= factor;
  return bar;
}

}  // namespace

std::string scaling_chart(const std::vector<ScalingResult>& results, ScalingFigure figure) {
  const bool efficiency = figure == ScalingFigure::efficiency;
  LineSeries measured{.name = "measured"}, predicted{.name = "predicted", .markers = false},
      ideal{.name = "ideal", .markers = false, .reference = true};
  const std::vector<const ScalingResult*> points = by_ranks(results);
  const ScalingResult& first = *points.front();
  const auto unit = [&](double ranks) { return efficiency ? 100 * first.point.ranks / ranks : 1; };
  for (const ScalingResult* result : points) {
    const double ranks = result->point.ranks, scale = unit(ranks);
    ideal.x.push_back(ranks);
    ideal.y.push_back(scale * ranks / first.point.ranks);
    predicted.x.push_back(ranks);
    predicted.y.push_back(scale * samples_per_s(*result, result->predicted.total()) /
                          samples_per_s(first, first.predicted.total()));
    if (!result->measured || !first.measured) continue;
    const double base = samples_per_s(first, first.measured->median) / scale;
    measured.x.push_back(ranks);
    measured.y.push_back(samples_per_s(*result, result->measured->median) / base);
    const auto [least, most] = std::ranges::minmax(result->measured->steps);
    measured.low.push_back(samples_per_s(*result, most) / base);
    measured.high.push_back(samples_per_s(*result, least) / base);
  }
  Chart chart{.title = efficiency ? "Efficiency" : "Speed-up",
              .x = {.label = "ranks", .scale = Scale::log2},
              .y = {.label = "speed-up", .scale = Scale::log2}};
  if (efficiency) chart.y = {.label = "efficiency", .unit = "%", .from_zero = true};
  chart.marks = Lines{{ideal, predicted, measured}};
  return svg(chart);
}

std::string step_parts_chart(const std::vector<ScalingResult>& results) {
  Stacks stacks{{std::begin(kStepParts), std::end(kStepParts)}, {}};
  for (const ScalingResult* result : by_ranks(results)) {
    StackGroup group{std::to_string(result->point.ranks), {}};
    if (result->measured) group.bars.push_back(bar_of(result->measured->parts, *result, false));
    group.bars.push_back(bar_of(result->predicted, *result, true));
    stacks.groups.push_back(std::move(group));
  }
  Chart chart{.title = "Where the time of all ranks goes (level: perfect scaling)",
              .x = {.label = "ranks (full colour: measured; pale: predicted)"},
              .y = {.label = "rank time per sample", .unit = "ms"},
              .width_in = kPageInches,
              .legend = LegendAt::right};
  chart.marks = std::move(stacks);
  return svg(chart);
}

}  // namespace concertina
