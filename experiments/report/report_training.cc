#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/number_text.h"
#include "experiments/report/html.h"
#include "experiments/report/report_sections.h"

namespace concertina {
namespace {

using MetricsValue = double MetricsPoint::*;

constexpr std::size_t kLeastSmoothed = 40;  // steps; fewer are read as they are
constexpr double kSmoothedShare = 0.02;     // of the steps: how many a mean is over

struct Curve {
  const char* title;
  const char* file;  // name of the saved figure
  MetricsValue value;
  bool from_zero, smooth, rates;
};

constexpr Curve kLossCurve{"loss, nats per target", "loss", &MetricsPoint::loss, false, true, false};
constexpr Curve kOtherCurves[] = {
    {"tokens per second", "tokens-per-second", &MetricsPoint::tokens_per_s, true, true, true},
    {"bubble", "bubble", &MetricsPoint::bubble, true, true, false},
    {"gradient norm, before clipping", "gradient-norm", &MetricsPoint::grad_norm, true, true,
     false},
    {"learning rate", "learning-rate", &MetricsPoint::lr, true, false, false},
};

double smoothing_span(std::size_t steps) {
  return std::max(2.0, std::round(kSmoothedShare * static_cast<double>(steps)));
}

/// The range of y that has all finite points in it, with some room.
void fit_range(bool from_zero, html::Plot& plot) {
  double low = std::numeric_limits<double>::infinity(), high = -low;
  for (const html::Series& series : plot.series)
    for (const html::Point& point : series.points)
      if (html::drawable(point.y)) low = std::min(low, point.y), high = std::max(high, point.y);
  if (from_zero) low = std::min(low, 0.0), high = std::max(high, 0.0);
  if (low > high) low = high = 0;
  // Where all values are equal, room enough to tell the ticks of so large a number apart.
  const double room =
      std::max({0.06 * (high - low), 1e-6 * std::abs(high), 1e-6 * std::abs(low), 1e-9});
  plot.low = from_zero && low == 0 ? 0 : low - room;
  plot.high = high + room;
}

html::Plot plot_of(const std::vector<MetricsPoint>& metrics, const Curve& curve) {
  std::vector<html::Point> points;
  for (const MetricsPoint& point : metrics) points.push_back({point.step, point.*(curve.value)});
  html::Plot plot{.x_unit = "step",
                  .left = metrics.front().step,
                  .right = metrics.back().step,
                  .series = {},
                  .height = 180};
  const bool smooth = curve.smooth && metrics.size() >= kLeastSmoothed;
  if (smooth) {
    plot.series.push_back({.style = "faint", .points = points, .name = "this step"});
    points = html::smoothed(points, smoothing_span(metrics.size()), curve.rates);
  }
  plot.series.push_back(
      {.style = "saved", .points = std::move(points), .name = smooth ? "smoothed" : curve.title});
  return plot;
}

std::string last_of(const std::vector<MetricsPoint>& metrics, const Curve& curve) {
  const double last = metrics.back().*(curve.value);
  if (!std::isfinite(last)) return "no number";
  return last >= 1e4 && last < 1e15 ? grouped(std::llround(last)) : fmt::format("{:.5g}", last);
}

std::string curve_figure(const std::vector<MetricsPoint>& metrics, const Curve& curve,
                         html::Plot plot, const std::string& more = {}) {
  fit_range(curve.from_zero, plot);
  return fmt::format("<figure><figcaption>{} <span>last {}{}</span>{}</figcaption>{}</figure>\n",
                     curve.title, last_of(metrics, curve), more, html::save_button(curve.file),
                     html::plot(plot));
}

/// Held-out points over the same text as most of them; the end of a run may be over more.
std::string loss_figure(const RunFiles& run, const RunCourse& course) {
  html::Plot plot = plot_of(run.metrics, kLossCurve);
  plot.marks = change_marks(course, plot);
  std::string more;
  html::Series held_out{.style = "held", .points = {}, .dots = true, .name = "held out"};
  for (const ValidationPoint& point : run.validations)
    if (point.tokens == run.validations.front().tokens)
      held_out.points.push_back({point.step, point.loss});
  if (!held_out.points.empty()) plot.series.push_back(held_out);
  if (!run.validations.empty()) {
    const ValidationPoint& last = run.validations.back();
    more = fmt::format("; held out {}", number_text(last.loss));
    if (last.tokens > 0)
      more += fmt::format(" over {} of {} targets", grouped(last.tokens), grouped(last.of_tokens));
  }
  return curve_figure(run.metrics, kLossCurve, std::move(plot), html::escape(more));
}

/// Where the curve of held-out losses is over less text than the last one.
std::string held_out_note(const RunFiles& run) {
  if (run.validations.empty()) return "";
  const ValidationPoint &first = run.validations.front(), &last = run.validations.back();
  if (first.tokens == last.tokens || first.tokens == 0) return "";
  return fmt::format(
      "<p class=\"note\">The curve of held-out losses is over the first {} targets of the held-out "
      "data, as evaluated during training; at the end, over {}, it is {}.</p>\n",
      grouped(first.tokens), grouped(last.tokens), number_text(last.loss));
}

}  // namespace

std::string training_section(const RunFiles& run, const RunCourse& course) {
  if (run.metrics.size() < 2) return "";
  std::string text = "<h2>Training</h2>\n";
  if (run.metrics.size() >= kLeastSmoothed)
    text += fmt::format(
        "<p class=\"lead\">Faint: every step. Strong: exponential mean over about {:.0f} steps "
        "(of tokens per second: their tokens over their seconds).</p>\n",
        smoothing_span(run.metrics.size()));
  text += "<div class=\"bar\">" + html::key("f", "training");
  if (!run.validations.empty()) text += html::key("kh", "held out");
  text += "</div>\n<div class=\"grid2\">\n" + loss_figure(run, course);
  for (const Curve& curve : kOtherCurves)
    text += curve_figure(run.metrics, curve, plot_of(run.metrics, curve));
  return text + "</div>\n" + held_out_note(run);
}

}  // namespace concertina
