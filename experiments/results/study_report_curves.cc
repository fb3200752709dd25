#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "experiments/report/html.h"
#include "experiments/results/study_report_sections.h"

namespace concertina {
namespace {

constexpr std::size_t kColours = 6, kMostCurves = 8;
constexpr std::size_t kMostWithTrials = 1;        // lines: beside others trials would be noise
constexpr std::size_t kLeastSmoothedSteps = 100;  // fewer are read as they are

struct PageCurve {
  const char* column;
  const char* title;
  bool from_zero, rates;
};
constexpr PageCurve kPageCurves[] = {
    {"loss", "loss, nats per target", false, false},
    {"validation_loss", "validation loss, nats per target", false, false},
    {"tokens_per_s", "tokens per second", true, true},
    {"bubble", "bubble", true, false},
    {"grad_norm", "gradient norm, before clipping", true, false},
};

/// Groups whose means are the same numbers are one line.
struct GroupCurve {
  std::vector<std::string> labels;
  MeanCurve mean;
  std::vector<StepCurve> trials;
};

std::vector<GroupCurve> group_curves(const StudyPage& page, const std::string& column) {
  std::vector<GroupCurve> curves;
  for (const PageGroup& group : page_groups(page)) {
    GroupCurve curve{.labels = {group.label}, .mean = {}, .trials = {}};
    for (const TrialRecord* trial : group.trials)
      if (const auto course = page.courses.find(trial->number); course != page.courses.end())
        curve.trials.push_back(curve_of(course->second, column));
    curve.mean = mean_of(curve.trials, page.table.confidence);
    if (curve.mean.step.size() < 2) continue;
    const auto same = std::ranges::find(curves, curve.mean, &GroupCurve::mean);
    if (same == curves.end())
      curves.push_back(std::move(curve));
    else
      same->labels.push_back(group.label);
  }
  return curves;
}

std::vector<html::Point> points_of(const std::vector<double>& x, const std::vector<double>& y) {
  std::vector<html::Point> points;
  for (std::size_t i = 0; i < x.size(); ++i) points.push_back({x[i], y[i]});
  return points;
}

/// Long curves are read better without the noise of single steps.
std::vector<html::Point> shown_points(const MeanCurve& curve, bool rates) {
  std::vector<html::Point> points = points_of(curve.step, curve.mean);
  if (points.size() < kLeastSmoothedSteps) return points;
  return html::smoothed(points, std::max(2.0, 0.02 * static_cast<double>(points.size())), rates);
}

std::string style_of_series(std::size_t index) {
  return fmt::format("s{}{}", index % kColours, index / kColours % 2 == 1 ? " dash" : "");
}

html::Plot plot_of_groups(const std::vector<GroupCurve>& curves, const PageCurve& what) {
  html::Plot plot{.x_unit = "step",
                  .left = std::numeric_limits<double>::infinity(),
                  .right = 0,
                  .series = {},
                  .height = 220};
  const std::size_t shown = std::min(curves.size(), kMostCurves);
  for (std::size_t i = 0; i < shown && curves.size() <= kMostWithTrials; ++i)
    for (const StepCurve& trial : curves[i].trials)
      if (curves[i].trials.size() > 1)
        plot.series.push_back(
            {.style = style_of_series(i) + " faint", .points = points_of(trial.step, trial.value)});
  for (std::size_t i = 0; i < shown; ++i) {
    const GroupCurve& curve = curves[i];
    const std::string name =
        curve.labels.size() == 1 ? curve.labels[0] : fmt::format("{} groups", curve.labels.size());
    plot.series.push_back({.style = style_of_series(i),
                           .points = shown_points(curve.mean, what.rates),
                           .name = name});
    plot.left = std::min(plot.left, curve.mean.step.front());
    plot.right = std::max(plot.right, curve.mean.step.back());
  }
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const html::Series& series : plot.series)
    for (const html::Point& point : series.points)
      if (html::drawable(point.y)) low = std::min(low, point.y), high = std::max(high, point.y);
  if (what.from_zero) low = std::min(low, 0.0);
  if (low > high) low = high = 0;
  const double room = std::max({0.05 * (high - low), 1e-6 * std::abs(high), 1e-9});
  plot.low = what.from_zero && low == 0 ? 0 : low - room;
  plot.high = high + room;
  return plot;
}

/// The lines' names; those of one line together.
std::string curve_legend(const std::vector<GroupCurve>& curves) {
  std::string text;
  const std::size_t shown = std::min(curves.size(), kMostCurves);
  for (std::size_t i = 0; i < shown; ++i) {
    const auto& labels = curves[i].labels;
    std::string name = fmt::format("{}", fmt::join(labels, ", "));
    if (labels.size() > 4)
      name = fmt::format("{}, {} and {} others", labels[0], labels[1], labels.size() - 2);
    if (labels.size() > 1) name += " (the same values)";
    text += fmt::format(
        "<span class=\"key\"><svg><line class=\"{}\" x1=\"0\" x2=\"14\" y1=\"7\" y2=\"7\"/></svg>{}"
        "</span>",
        style_of_series(i), html::escape(name));
  }
  if (shown < curves.size())
    text += fmt::format("<span>the first {} of {}</span>", shown, curves.size());
  return text;
}

}  // namespace

std::string curves_section(const StudyPage& page) {
  std::string figures;
  for (const PageCurve& what : kPageCurves) {
    const std::vector<GroupCurve> curves = group_curves(page, what.column);
    if (curves.empty()) continue;
    figures +=
        fmt::format("<figure><figcaption>{}{}</figcaption><div class=\"bar\">{}</div>{}</figure>\n",
                    what.title, html::save_button(what.column), curve_legend(curves),
                    html::plot(plot_of_groups(curves, what)));
  }
  if (figures.empty()) return {};
  return "<h2>Curves</h2>\n<p class=\"lead\">Strong: the mean over the trials of a group, of the "
         "steps that all of them have (of 100 steps and more, the exponential mean over 2% of "
         "them). Faint, where there is one line: each trial.</p>\n<div class=\"grid2\">\n" +
         figures + "</div>\n";
}

}  // namespace concertina
