#include <algorithm>

#include "experiments/figure/chart.h"
#include "experiments/study/scaling.h"

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

}  // namespace

std::string scaling_chart(const std::vector<ScalingResult>& results, bool weak) {
  LineSeries measured{.name = "measured"}, predicted{.name = "predicted", .markers = false},
      ideal{.name = "ideal", .markers = false, .reference = true};
  const std::vector<const ScalingResult*> points = by_ranks(results);
  const ScalingResult& first = *points.front();
  for (const ScalingResult* result : points) {
    const double ranks = result->point.ranks;
    ideal.x.push_back(ranks);
    ideal.y.push_back(ranks / first.point.ranks);
    predicted.x.push_back(ranks);
    predicted.y.push_back(samples_per_s(*result, result->predicted.total()) /
                          samples_per_s(first, first.predicted.total()));
    if (!result->measured || !first.measured) continue;
    const double base = samples_per_s(first, first.measured->median);
    measured.x.push_back(ranks);
    measured.y.push_back(samples_per_s(*result, result->measured->median) / base);
    const auto [least, most] = std::ranges::minmax(result->measured->steps);
    measured.low.push_back(samples_per_s(*result, most) / base);
    measured.high.push_back(samples_per_s(*result, least) / base);
  }
  Chart chart{.title = weak ? "Weak scaling" : "Strong scaling",
              .x = {.label = "ranks", .scale = Scale::log2},
              .y = {.label = "speed-up", .scale = Scale::log2}};
  chart.marks = Lines{{ideal, predicted, measured}};
  return svg(chart);
}

std::string step_parts_chart(const std::vector<ScalingResult>& results) {
  Bars bars;
  for (const char* part : kStepParts) bars.series.push_back({.name = part});
  for (const ScalingResult* result : by_ranks(results)) {
    bars.groups.push_back(std::to_string(result->point.ranks) +
                          (result->measured ? "" : " (predicted)"));
    const StepParts& parts = result->measured ? result->measured->parts : result->predicted;
    const double values[] = {parts.compute,   parts.bubble, parts.imbalance, parts.transfer,
                             parts.reduction, parts.update, parts.variation, parts.cores};
    for (std::size_t i = 0; i < std::size(values); ++i)
      bars.series[i].values.push_back(100 * values[i] / parts.total());
  }
  Chart chart{.title = "What a step is made of",
              .x = {.label = "ranks"},
              .y = {.label = "share of the step", .unit = "%", .from_zero = true},
              .width_in = kPageInches};
  chart.marks = bars;
  return svg(chart);
}

}  // namespace concertina
