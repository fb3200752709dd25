#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/number_text.h"
#include "experiments/report/report_page.h"
#include "io/figure/page.h"

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
  bool share = false;  // is shown in percent
};

constexpr Curve kLossCurve{"loss, per target", "loss", &MetricsPoint::loss, false, true, false};
constexpr Curve kOtherCurves[] = {
    {"tokens per second", "tokens-per-second", &MetricsPoint::tokens_per_s, true, true, true},
    {"bubble", "bubble", &MetricsPoint::bubble, true, true, false, true},
    {"gradient norm, before clipping", "gradient-norm", &MetricsPoint::grad_norm, true, true,
     false},
    {"learning rate", "learning-rate", &MetricsPoint::lr, true, false, false},
};

double smoothing_span(std::size_t steps) {
  return std::max(2.0, std::round(kSmoothedShare * static_cast<double>(steps)));
}

Lines lines_of(const std::vector<MetricsPoint>& metrics, const Curve& curve) {
  LineSeries series{.name = curve.title, .markers = false, .look = 0};
  for (const MetricsPoint& point : metrics) {
    series.x.push_back(point.step);
    series.y.push_back(point.*(curve.value));
  }
  if (!curve.smooth || metrics.size() < kLeastSmoothed) return {{series}};
  LineSeries mean = html::smoothed(series, smoothing_span(metrics.size()), curve.rates);
  series.faint = true;
  series.name = "this step";
  mean.name = "smoothed";
  return {{series, mean}};
}

std::string last_of(const std::vector<MetricsPoint>& metrics, const Curve& curve) {
  const double last = metrics.back().*(curve.value);
  if (!std::isfinite(last)) return "no number";
  if (curve.share) return html::share_text(last);
  return last >= 1e4 && last < 1e15 ? grouped(std::llround(last)) : fmt::format("{:.5g}", last);
}

std::string curve_figure(const std::vector<MetricsPoint>& metrics, const Curve& curve,
                         const Lines& lines, const std::string& more = {}) {
  return html::figure(
      curve.file,
      draw({.title = curve.title,
            .x = {.label = "step", .low = metrics.front().step, .high = metrics.back().step},
            .y = {.from_zero = curve.from_zero},
            .marks = lines,
            .width_in = html::kHalf,
            .height_in = 2.4,
            .note = "last " + last_of(metrics, curve) + more}));
}

/// Held-out points over the same text as most of them; the end of a run may be over more.
std::string loss_figure(const RunFiles& run, const RunCourse& course) {
  Lines lines = lines_of(run.metrics, kLossCurve);
  lines.marks = change_marks(course);
  std::string more;
  LineSeries held_out{.name = "held out", .look = 3};
  for (const ValidationPoint& point : run.validations)
    if (point.tokens == run.validations.front().tokens) {
      held_out.x.push_back(point.step);
      held_out.y.push_back(point.loss);
    }
  if (!held_out.x.empty()) lines.series.push_back(held_out);
  if (!run.validations.empty()) {
    const ValidationPoint& last = run.validations.back();
    more = fmt::format("; held out {}", number_text(last.loss));
    if (last.tokens > 0)
      more += fmt::format(" over {}{} targets", grouped(last.tokens),
                          last.of_tokens > 0 ? " of " + grouped(last.of_tokens) : "");
  }
  return curve_figure(run.metrics, kLossCurve, lines, more);
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
  text += "<div class=\"grid2\">\n" + loss_figure(run, course);
  for (const Curve& curve : kOtherCurves)
    if (std::ranges::any_of(run.metrics, [&](const MetricsPoint& point) {
          return std::isfinite(point.*(curve.value));
        }))
      text += curve_figure(run.metrics, curve, lines_of(run.metrics, curve));
  return text + "</div>\n" + held_out_note(run);
}

}  // namespace concertina
