#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/number_text.h"
#include "experiments/report/html.h"
#include "experiments/report/report_page.h"
#include "experiments/results/group_comparison.h"
#include "experiments/results/study_report_sections.h"
#include "parallel/simulate/idle_causes.h"

namespace concertina {
namespace {

/// A step of a group: milliseconds, and the shares of it by what took them.
struct StepTime {
  std::string label;
  double ms = 0, bubble = 0;
  IdleCauses causes;
  bool by_cause = false;  // else the bubble is all that is known
};

std::optional<double> mean_figure(const Trials& trials, const std::string& column) {
  const SampleSummary summary = summarize(figures_of(trials, column), 0.95);
  return summary.n > 0 ? std::optional(summary.mean) : std::nullopt;
}

/// Nothing of a group that says neither.
std::optional<StepTime> step_time(const PageGroup& group) {
  StepTime time{.label = group.label, .causes = {}};
  const auto recorded = mean_figure(group.trials, "recorded.median_step_ms");
  const auto bubble = mean_figure(group.trials, "recorded.bubble");
  if (recorded && bubble) {
    time.ms = *recorded;
    time.bubble = *bubble;
    for (std::size_t c = 0; c < kCauses; ++c) {
      const auto share = mean_figure(
          group.trials, fmt::format("recorded.bubble_causes.{}", name_of(static_cast<Cause>(c))));
      time.by_cause |= share.has_value();
      time.causes.by_cause[c] = std::max(0.0, share.value_or(0));
    }
    return time;
  }
  const auto ms = mean_figure(group.trials, "median_step_ms");
  const auto idle = mean_figure(group.trials, "bubble");
  if (!ms || !idle) return std::nullopt;
  time.ms = *ms;
  time.bubble = *idle;
  return time;
}

}  // namespace

std::string step_time_section(const StudyPage& page) {
  std::vector<CauseBar> bars;
  for (const PageGroup& group : page_groups(page))
    if (const auto time = step_time(group)) {
      CauseBar& bar = bars.emplace_back(
          CauseBar{time->label, time->ms * (1 - time->bubble), 0, time->causes, {}, {}});
      for (double& share : bar.causes.by_cause) share *= time->ms;
      if (!time->by_cause) bar.idle = time->ms * time->bubble;
      bar.text = fmt::format("{}, bubble {}", duration_text(time->ms * 1e-3),
                             html::share_text(time->bubble));
    }
  if (bars.empty()) return {};
  return "<h2>Where the time went</h2>\n<p class=\"lead\">A step of each group, mean over its "
         "trials and over ranks: of the recorded steps where a trace was kept, else of all. Idle "
         "time is by cause, as on the page of a run.</p>\n" +
         html::figure("step-time", draw_causes(bars, {.unit = "ms"}));
}

}  // namespace concertina
