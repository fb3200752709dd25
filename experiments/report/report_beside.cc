#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>

#include "core/number_text.h"
#include "experiments/report/report_page.h"
#include "io/figure/page.h"

namespace concertina {
namespace {

/// Held-out losses over the same text, by the seconds of training that had passed.
struct TimedLosses {
  std::vector<double> seconds, loss;
  double end = 0;  // seconds of the whole run

  /// The loss of the last evaluation up to then; NaN before the first.
  double at(double when) const {
    const auto after = std::ranges::upper_bound(seconds, when) - seconds.begin();
    return after == 0 ? std::nan("") : loss[static_cast<std::size_t>(after) - 1];
  }
  /// Seconds to the first loss that is as low; infinite where none is.
  double to(double wanted) const {
    const auto found = std::ranges::find_if(loss, [&](double one) { return one <= wanted; });
    return found == loss.end() ? std::numeric_limits<double>::infinity()
                               : seconds[static_cast<std::size_t>(found - loss.begin())];
  }
};

TimedLosses losses_of(const RunLog& log) {
  TimedLosses timed;
  const StepCurve clock = training_seconds(log);
  if (!clock.value.empty()) timed.end = clock.value.back();
  for (const ValidationPoint& point : log.validations) {
    if (point.tokens != log.validations.front().tokens || !std::isfinite(point.loss)) continue;
    timed.seconds.push_back(seconds_at(clock, point.step));
    timed.loss.push_back(point.loss);
  }
  return timed;
}

LineSeries series_of(const TimedLosses& timed, const std::string& name, int look) {
  return {.name = name, .x = timed.seconds, .y = timed.loss, .look = look};
}

/// "after 3.2 s", or "never".
std::string reached(const TimedLosses& timed, double wanted) {
  const double seconds = timed.to(wanted);
  return std::isfinite(seconds) ? "after " + duration_text(seconds) : "never";
}

}  // namespace

std::string beside_section(const RunFiles& run, const RunCourse& course, const BesideRun* other) {
  const bool freezes = std::ranges::any_of(
      course.segments, [](const RunSegment& segment) { return segment.frozen > 0; });
  if (other == nullptr && !freezes) return "";
  std::string text = "<h2>What it did to the loss</h2>\n";
  if (other == nullptr)
    return text +
           "<p class=\"note\">This run froze layers. What that did to the loss shows beside a run "
           "of the same config without it: <code>concertina report RUN --beside UNFROZEN</code>, "
           "both "
           "with <code>eval.every</code>. Faster steps alone say nothing of it.</p>\n";
  const TimedLosses mine = losses_of({run.metrics, run.validations, starts_of(run.launches)}),
                    theirs = losses_of(other->log);
  if (mine.loss.empty() || theirs.loss.empty())
    return text + fmt::format(
                      "<p class=\"note\">{} has no evaluation to compare: set "
                      "<code>eval.every</code>.</p>\n",
                      html::escape(mine.loss.empty() ? run.trace.run : other->name));
  const ValidationPoint &here = run.validations.front(), &there = other->log.validations.front();
  if (here.data.empty() || here.data != there.data || here.measure != there.measure ||
      here.tokens != there.tokens)
    return text +
           fmt::format("<p class=\"note\">The held-out losses of {} are not compared: {}.</p>\n",
                       html::escape(other->name),
                       here.data.empty() || there.data.empty()
                           ? "it is not recorded which data they are of"
                           : "the held-out data, the tokenizers or the tasks differ");
  const double last = mine.loss.back(), then = theirs.at(mine.end), end = theirs.loss.back();
  text += fmt::format(
      "<p class=\"lead\">This run trained for {} and ends at a held-out loss of {}. {} was at {} "
      "after as many "
      "seconds, and reached {} {}. It trained for {} and ends at {}, which this run reached "
      "{}.</p>\n",
      duration_text(mine.end), number_text(last), html::escape(other->name),
      std::isfinite(then) ? number_text(then) : "no evaluation yet", number_text(last),
      reached(theirs, last), duration_text(theirs.end), number_text(end), reached(mine, end));
  Lines lines;
  lines.series = {series_of(mine, run.trace.run, 0), series_of(theirs, other->name, 3)};
  return text + "<div class=\"grid2\">\n" +
         html::figure("loss-by-seconds",
                      draw({.title = "held-out loss, per target",
                            .x = {.label = "seconds of training", .from_zero = true},
                            .y = {},
                            .marks = lines,
                            .width_in = html::kHalf,
                            .height_in = 2.6})) +
         "</div>\n<p class=\"note\">Seconds are of training, with decisions and changes of the "
         "layout, "
         "without "
         "evaluations.</p>\n";
}

}  // namespace concertina
