#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/number_text.h"
#include "experiments/record/run_course.h"
#include "experiments/report/report_page.h"
#include "io/figure/page.h"

namespace concertina {
namespace {

/// How much of the chart the longest segment mean and nearly all steps fill.
constexpr double kRoomAbove = 1.15, kShownSteps = 0.98;
constexpr double kMostDrawnTime = 1e300;  // of what an axis holds

std::string seconds_cell(double seconds) {
  return std::isnan(seconds) ? "–" : duration_text(seconds);
}

std::string layers_cell(double layers) {
  return std::isnan(layers) ? "?" : fmt::format("{:.0f}", layers);
}

std::string both(const std::string& before, const std::string& after) {
  return html::escape(before == after ? after : before + " → " + after);
}

double top_of(const std::vector<MetricsPoint>& metrics, const RunCourse& course) {
  std::vector<double> times;
  for (const MetricsPoint& point : metrics)
    if (std::abs(point.step_ms) < kMostDrawnTime) times.push_back(point.step_ms);
  if (times.empty()) return 1;
  const auto at = static_cast<std::ptrdiff_t>(kShownSteps * static_cast<double>(times.size() - 1));
  std::ranges::nth_element(times, times.begin() + at);
  double top = times[static_cast<std::size_t>(at)];
  for (const RunSegment& segment : course.segments) top = std::max(top, segment.mean * 1e3);
  return std::max(kRoomAbove * top, 1e-6);
}

/// The share of the layers that is frozen, of the height of the chart.
LineSeries frozen_area(const RunCourse& course, double first, double last, double top) {
  LineSeries area{.band = true, .markers = false, .look = 4};
  const auto add = [&](double step, double layers) {
    if (std::isnan(layers)) return;
    if (!area.y.empty()) area.x.push_back(step), area.y.push_back(area.y.back());
    area.x.push_back(step);
    area.y.push_back(layers * top / course.layers);
  };
  if (course.layers <= 0) return area;
  add(first, course.changes.front().frozen_before);
  for (const RunChange& change : course.changes) add(change.step + 0.5, change.frozen);
  add(last, course.changes.back().frozen);
  area.low.assign(area.y.size(), 0);
  area.high = area.y;
  return area;
}

/// Step times over steps, the means of the segments, and a mark for each change.
std::string strip(const std::vector<MetricsPoint>& metrics, const RunCourse& course) {
  if (metrics.size() < 2) return "";
  const double first = metrics.front().step, last = metrics.back().step,
               top = top_of(metrics, course);
  LineSeries times{.name = "this step", .markers = false, .faint = true, .look = 0};
  for (const MetricsPoint& point : metrics) {
    times.x.push_back(point.step);
    times.y.push_back(std::min(point.step_ms, top));
  }
  LineSeries means{.name = "mean between two changes", .markers = false, .look = 0};
  for (const RunSegment& segment : course.segments)
    for (const double step : {segment.first, segment.last}) {
      means.x.push_back(step);
      means.y.push_back(segment.mean * 1e3);
    }
  const auto cut = std::ranges::count_if(
      metrics, [&](const MetricsPoint& point) { return point.step_ms > top; });
  std::string note = "marks: changes, as numbered below";
  if (course.layers > 0)
    note += fmt::format("; shaded: frozen layers, full height: all {}", course.layers);
  if (cut > 0) note += fmt::format("; {} longer than the chart is high", counted(cut, "step"));
  return html::figure("changes",
                      draw({.title = "time of a step, ms",
                            .x = {.label = "step", .low = first, .high = last},
                            .y = {.low = 0, .high = top},
                            .marks = Lines{{frozen_area(course, first, last, top), times, means},
                                           change_marks(course)},
                            .width_in = html::kWhole,
                            .height_in = 2.4,
                            .note = note}));
}

std::string change_row(const RunCourse& course, std::size_t number) {
  const RunChange& change = course.changes[number];
  const RunSegment* const after = course.segment_after(change);
  const double measured = !std::isnan(change.measured_step) ? change.measured_step
                          : after != nullptr                ? after->mean
                                                            : std::nan("");
  return fmt::format(
      "<tr class=\"figures\"><td>{}</td><td>{:.0f}</td><td>{}</td><td>{}</td><td>{}</td><td>{}</td>"
      "<td>{}</td><td>{}</td><td>{}</td></tr>\n"
      "<tr class=\"why\"><td></td><td colspan=\"8\">{}</td></tr>\n",
      number + 1, change.step, both(layers_cell(change.frozen_before), layers_cell(change.frozen)),
      both(change.layout_before, change.layout), seconds_cell(change.predicted_cost),
      seconds_cell(change.cost),
      std::isnan(change.moved_bytes) ? "–" : bytes_text(change.moved_bytes),
      seconds_cell(change.predicted_step), seconds_cell(measured), html::escape(change.why));
}

std::string change_table(const RunCourse& course) {
  std::string text = fmt::format(
      "<div class=\"wide\"><table><tr><th>change</th><th>after step</th><th>frozen layers{}</th>"
      "<th>layout</th><th>cost, predicted</th><th>measured</th>"
      "<th>moved</th><th>step after it, predicted</th><th>measured</th></tr>\n",
      course.layers > 0 ? fmt::format(" of {}", course.layers) : "");
  const std::size_t shown = std::min(course.changes.size(), kMaxTableRows);
  for (std::size_t i = 0; i < shown; ++i) text += change_row(course, i);
  text += "</table></div>\n";
  if (shown < course.changes.size())
    text += fmt::format("<p class=\"note\">The first {} of {} changes.</p>\n", shown,
                        course.changes.size());
  return text;
}

std::string ladder_row(const std::string& steps, const std::string& layout,
                       const std::string& frozen, double seconds, double longest,
                       const std::string& middle, double speed_up) {
  return fmt::format(
      "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"rung\"><i "
      "style=\"width:{:.1f}%\"></i></td><td>{}</td><td>{}</td><td>{:.2f}×</td></tr>\n",
      steps, html::escape(layout), frozen, 100 * seconds / longest, duration_text(seconds), middle,
      speed_up);
}

/// Mean step times from change to change, and of the whole run with what the changes took.
std::string ladder_table(const RunCourse& course) {
  std::string text =
      "<div class=\"wide\"><table><tr><th>steps</th><th>layout</th><th>frozen layers</th>"
      "<th class=\"rung\">mean step</th><th></th><th>median</th><th>speed-up</th></tr>\n";
  if (course.segments.empty()) return "";
  const double all = course.seconds() / static_cast<double>(course.steps());
  double longest = all;
  for (const RunSegment& segment : course.segments) longest = std::max(longest, segment.mean);
  const std::size_t shown = std::min(course.segments.size(), kMaxTableRows);
  for (std::size_t i = 0; i < shown; ++i) {
    const RunSegment& segment = course.segments[i];
    text += ladder_row(fmt::format("{:.0f} to {:.0f}", segment.first, segment.last), segment.layout,
                       layers_cell(segment.frozen), segment.mean, longest,
                       duration_text(segment.median), segment.speed_up);
  }
  return text + ladder_row("all, and the changes", "", "", all, longest, "", course.speed_up()) +
         "</table></div>\n<p class=\"note\">Speed-up over the first segment. A segment's mean is "
         "without its first step, which touches new memory; the last row is of all steps but the "
         "run's first one, and of the changes.</p>\n";
}

/// The decisions besides the changes.
std::string notes_list(const RunCourse& course) {
  std::string items;
  const std::size_t shown = std::min(course.notes.size(), kMaxTableRows);
  for (std::size_t i = 0; i < shown; ++i)
    items += fmt::format("<li>after step {:.0f}: {}</li>\n", course.notes[i].step,
                         html::escape(course.notes[i].text));
  if (shown < course.notes.size())
    items += fmt::format("<li>the first {} of {} decisions</li>\n", shown, course.notes.size());
  if (!course.cache.empty())
    items += fmt::format("<li>{} in the last launch</li>\n", html::escape(course.cache));
  return items.empty() ? "" : "<ul class=\"note\">\n" + items + "</ul>\n";
}

}  // namespace

std::vector<LineMark> change_marks(const RunCourse& course) {
  std::vector<LineMark> marks;
  for (const RunChange& change : course.changes) {
    if (marks.size() == kMaxTableRows) break;
    marks.push_back(
        {.x = change.step + 0.5,
         .label = fmt::format("{}", marks.size() + 1),
         .title = fmt::format("after step {:.0f}: {}", change.step, change_text(course, change))});
  }
  return marks;
}

std::string changes_section(const RunFiles& run, const RunCourse& course) {
  const std::string notes = notes_list(course);
  if (course.changes.empty()) return notes.empty() ? "" : "<h2>Changes</h2>\n" + notes;
  const std::string cost =
      course.change_seconds() > 0
          ? fmt::format(", which took {} in all, besides the times of the steps",
                        duration_text(course.change_seconds()))
          : "";
  return fmt::format("<h2>Changes</h2>\n<p class=\"lead\">{} between steps{}.</p>\n",
                     counted(std::ssize(course.changes), "change"), cost) +
         strip(run.metrics, course) + change_table(course) + ladder_table(course) + notes;
}

}  // namespace concertina
