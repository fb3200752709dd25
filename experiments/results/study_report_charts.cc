#include "experiments/results/statistics.h"
#include "experiments/results/study_report.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "core/number_text.h"
#include "experiments/report/report_page.h"
#include "io/figure/page.h"
#include "parallel/simulate/idle_causes.h"

namespace concertina {
namespace {

constexpr std::size_t kMostCurves = 8;
constexpr std::size_t kMostWithTrials = 1;        // lines: beside others trials would be noise
constexpr std::size_t kLeastSmoothedSteps = 100;  // fewer are read as they are

/// What a curve goes by in place of steps.
using Clock = StepCurve (*)(const RunLog& log);

struct PageCurve {
  const char* column;
  const char* title;
  bool from_zero = false, rates = false;
  const char* x = "step";
  Clock clock = nullptr;
};
constexpr PageCurve kPageCurves[] = {
    {"loss", "loss, per target"},
    {"loss", "loss, per target", false, false, "tokens", tokens_by_step},
    {"loss", "loss, per target", false, false, "seconds of training", training_seconds},
    {"validation_loss", "validation loss, per target"},
    {"validation_loss", "validation loss, per target", false, false, "tokens", tokens_by_step},
    {"validation_loss", "validation loss, per target", false, false, "seconds of training",
     training_seconds},
    {"tokens_per_s", "tokens per second", true, true},
    {"bubble", "bubble", true},
    {"grad_norm", "gradient norm, before clipping", true},
};

/// Groups whose means are the same numbers are one line.
struct GroupCurve {
  std::vector<std::string> labels;
  MeanCurve mean{};
  std::vector<StepCurve> trials{};
};

/// `log`'s curve, by the clock of the figure.
StepCurve timed_curve(const RunLog& log, const PageCurve& what) {
  StepCurve curve = curve_of(log, what.column);
  if (what.clock == nullptr) return curve;
  const StepCurve clock = what.clock(log);
  if (clock.step.empty()) return {};
  for (double& step : curve.step) step = seconds_at(clock, step);
  return curve;
}

/// By another clock than steps two trials have no point in common: none where a group has several.
std::vector<GroupCurve> group_curves(const StudyPage& page, const PageCurve& what) {
  std::vector<GroupCurve> curves;
  for (const PageGroup& group : page_groups(page)) {
    GroupCurve curve{.labels = {group.label}};
    for (const TrialRecord* trial : group.trials)
      if (const auto run = page.runs.find(trial->number); run != page.runs.end())
        curve.trials.push_back(timed_curve(run->second.course, what));
    if (what.clock != nullptr && curve.trials.size() > 1) return {};
    curve.mean = mean_of(curve.trials, page.table.confidence);
    if (std::ranges::count_if(curve.mean.mean, [](double y) { return std::isfinite(y); }) < 2)
      continue;
    const auto same = std::ranges::find(curves, curve.mean, &GroupCurve::mean);
    if (same == curves.end())
      curves.push_back(std::move(curve));
    else
      same->labels.push_back(group.label);
  }
  return curves;
}

/// The lines' names; those of one line together.
std::string name_of(const GroupCurve& curve) {
  const auto& labels = curve.labels;
  if (labels.size() == 1) return labels[0];
  const std::string all = labels.size() > 4 ? fmt::format("{}, {} and {} others", labels[0],
                                                          labels[1], labels.size() - 2)
                                            : fmt::format("{}", fmt::join(labels, ", "));
  return all + " (the same values)";
}

/// Long curves are read better without the noise of single steps.
Lines lines_of(const std::vector<GroupCurve>& curves, bool rates) {
  Lines lines;
  const std::size_t shown = std::min(curves.size(), kMostCurves);
  for (std::size_t i = 0; i < shown && curves.size() <= kMostWithTrials; ++i)
    for (const StepCurve& trial : curves[i].trials)
      if (curves[i].trials.size() > 1)
        lines.series.push_back(
            {.x = trial.step, .y = trial.value, .markers = false, .faint = true, .look = i});
  for (std::size_t i = 0; i < shown; ++i) {
    LineSeries mean{.name = name_of(curves[i]),
                    .x = curves[i].mean.step,
                    .y = curves[i].mean.mean,
                    .markers = false,
                    .look = i};
    const std::size_t steps = mean.x.size();
    lines.series.push_back(
        steps < kLeastSmoothedSteps
            ? std::move(mean)
            : html::smoothed(mean, std::max(2.0, 0.02 * static_cast<double>(steps)), rates));
  }
  return lines;
}

/// A step of a group: milliseconds, and the shares of it by what took them.
struct StepTime {
  std::string label;
  double ms = 0, bubble = 0;
  IdleCauses causes{};
  bool by_cause = false;  // else the bubble is all that is known
};

std::optional<double> mean_figure(const Trials& trials, const std::string& column) {
  const SampleSummary summary = summarize(figures_of(trials, column), 0.95);
  return summary.n > 0 ? std::optional(summary.mean) : std::nullopt;
}

/// The recorded steps of a group, else all of its steps; nothing where it tells of neither.
std::optional<StepTime> step_time(const PageGroup& group) {
  for (const std::string of : {"recorded.", ""}) {
    const auto ms = mean_figure(group.trials, of + "median_step_ms");
    const auto bubble = mean_figure(group.trials, of + "bubble");
    if (!ms || !bubble) continue;
    StepTime time{.label = group.label, .ms = *ms, .bubble = *bubble};
    for (std::size_t c = 0; c < kCauses && !of.empty(); ++c) {
      const auto share = mean_figure(
          group.trials, fmt::format("recorded.bubble_causes.{}", name_of(static_cast<Cause>(c))));
      time.by_cause |= share.has_value();
      time.causes.by_cause[c] = std::max(0.0, share.value_or(0));
    }
    return time;
  }
  return std::nullopt;
}

}  // namespace

std::string curves_section(const StudyPage& page) {
  std::string figures;
  for (const PageCurve& what : kPageCurves) {
    const std::vector<GroupCurve> curves = group_curves(page, what);
    if (curves.empty()) continue;
    const auto first = std::ranges::min_element(
        curves, {}, [](const GroupCurve& curve) { return curve.mean.step.front(); });
    figures += html::figure(
        fmt::format("{}-by-{}", what.column, std::string_view(what.x).substr(0, 7)),
        draw({.title = what.title,
              .x = {.label = what.x, .low = first->mean.step.front()},
              .y = {.from_zero = what.from_zero},
              .marks = lines_of(curves, what.rates),
              .width_in = html::kHalf,
              .height_in = 2.4,
              .legend = LegendAt::top,
              .note = curves.size() > kMostCurves
                          ? fmt::format("the first {} of {}", kMostCurves, curves.size())
                          : ""}));
  }
  if (figures.empty()) return {};
  return "<h2>Curves</h2>\n<p class=\"lead\">Strong: the mean over the trials of a group, of the "
         "steps that all of them have (of 100 steps and more, the exponential mean over 2% of "
         "them). Faint, where there is one line: each trial.</p>\n<div class=\"grid2\">\n" +
         figures + "</div>\n";
}

std::string step_time_section(const StudyPage& page) {
  std::vector<CauseBar> bars;
  for (const PageGroup& group : page_groups(page))
    if (const auto time = step_time(group)) {
      CauseBar& bar = bars.emplace_back(
          CauseBar{time->label, time->ms * (1 - time->bubble), 0, time->causes, {}, {}});
      for (double& share : bar.causes.by_cause) share *= time->ms;
      if (!time->by_cause) bar.idle = time->ms * time->bubble;
      bar.text = fmt::format("{}, bubble {} of {} steps", duration_text(time->ms * 1e-3),
                             html::share_text(time->bubble), time->by_cause ? "recorded" : "all");
    }
  if (bars.empty()) return {};
  return "<h2>Where the time went</h2>\n<p class=\"lead\">A step of each group, mean over its "
         "trials and over ranks: of the recorded steps where a trace was kept, else of all. Idle "
         "time is by cause, as on the page of a run.</p>\n" +
         html::figure("step-time", draw_causes(bars, {.unit = "ms"}));
}

}  // namespace concertina
