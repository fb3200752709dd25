#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "core/number_text.h"
#include "experiments/report/html.h"
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

std::string piece(const char* style, const char* name, double ms, double longest, double& at) {
  if (!(ms > 0)) return {};
  const std::string text = fmt::format(
      "<rect class=\"{}\" x=\"{}\" y=\"0\" width=\"{}\" height=\"16\"><title>{}: {}"
      "</title></rect>",
      style, html::percent(at / longest), html::percent(ms / longest), name,
      duration_text(ms * 1e-3));
  at += ms;
  return text;
}

std::string time_bar(const StepTime& time, double longest) {
  double at = 0;
  std::string text =
      piece("busy", "computing and updating", time.ms * (1 - time.bubble), longest, at);
  if (!time.by_cause) return text + piece("idle", "idle", time.ms * time.bubble, longest, at);
  for (std::size_t c = 0; c < kCauses; ++c) {
    const std::string style = fmt::format("c{}", c), name(name_of(static_cast<Cause>(c)));
    text += piece(style.c_str(), name.c_str(), time.ms * time.causes.by_cause[c], longest, at);
  }
  return text;
}

}  // namespace

std::string step_time_section(const StudyPage& page) {
  std::vector<StepTime> times;
  double longest = 0;
  for (const PageGroup& group : page_groups(page))
    if (const auto time = step_time(group)) {
      times.push_back(*time);
      longest = std::max(longest, time->ms);
    }
  if (times.empty() || !(longest > 0) || !html::drawable(longest)) return {};
  std::string text =
      "<h2>Where the time went</h2>\n<p class=\"lead\">A step of each group, mean over its trials "
      "and over ranks: of the recorded steps where a trace was kept, else of all. Idle time is by "
      "cause, as on the page of a run.</p>\n<figure><div class=\"bar\">";
  text += html::key("busy", "computing and updating");
  for (std::size_t c = 0; c < kCauses; ++c)
    text += html::key(fmt::format("c{}", c), name_of(static_cast<Cause>(c)));
  text += html::save_button("step-time") + "</div>\n<table class=\"bars\">\n";
  for (const StepTime& time : times)
    text += fmt::format(
        "<tr><td class=\"wrap\">{}</td><td class=\"bar-cell\"><svg>{}</svg></td><td>{}</td><td>"
        "bubble {}</td></tr>\n",
        html::escape(time.label), time_bar(time, longest), duration_text(time.ms * 1e-3),
        html::share_text(time.bubble));
  return text + "</table></figure>\n";
}

}  // namespace concertina
