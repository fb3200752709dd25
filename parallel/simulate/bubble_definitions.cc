#include "parallel/simulate/bubble_definitions.h"

#include <algorithm>

namespace concertina {
namespace {

/// Seconds from the first start to the last end of any rank's compute.
double all_ranks_seconds(const Plan& plan, const Timeline& timeline) {
  Interval all{-1, 0};
  for (const Interval& own : compute_spans(plan, timeline)) {
    if (own.end <= own.start) continue;
    all.start = all.start < 0 ? own.start : std::min(all.start, own.start);
    all.end = std::max(all.end, own.end);
  }
  return all.end - std::max(all.start, 0.0);
}

/// The compute of the busiest rank: a lower bound for any schedule with these costs.
double ideal_seconds(const Timeline& timeline) {
  return timeline.compute.empty() ? 0 : *std::ranges::max_element(timeline.compute);
}

double zero_bubble(const Plan& plan, const Timeline& timeline) {
  const double span = longest_span(plan, timeline);
  return span > 0 ? 1 - ideal_seconds(timeline) / span : 0;
}

double idle_over_ideal_time(const Plan& plan, const Timeline& timeline) {
  const double ideal = ideal_seconds(timeline);
  return ideal > 0 ? all_ranks_seconds(plan, timeline) / ideal - 1 : 0;
}

double idle_share(const Plan&, const Timeline& timeline) {
  return timeline.mean_bubble;
}

constexpr BubbleDefinition kDefinitions[] = {
    {"zero_bubble", "1 - m (F + B + W) / (longest span of a rank, first to last action)",
     "Qi et al. 2024 (ICLR, arXiv 2401.10241), section 5.3", zero_bubble},
    {"megatron",
     "t_pb / t_id = (t - m (F + B + W)) / (m (F + B + W)), with t from the first to the last "
     "action of all ranks: (p-1)/m, (p-1)/(v m)",
     "Narayanan et al. 2021 (SC21, arXiv 2104.04473), section 2.2", idle_over_ideal_time},
    {"idle_share", "1 - (busy time) / (makespan of the step), mean over ranks", "Concertina",
     idle_share},
};

}  // namespace

std::span<const BubbleDefinition> bubble_definitions() {
  return kDefinitions;
}

}  // namespace concertina
