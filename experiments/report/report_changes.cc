#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/number_text.h"
#include "experiments/record/run_course.h"
#include "experiments/report/html.h"
#include "experiments/report/report_sections.h"

namespace concertina {
namespace {

/// How much of the chart the longest segment mean and nearly all steps fill.
constexpr double kRoomAbove = 1.15, kShownSteps = 0.98;

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
    if (html::drawable(point.step_ms)) times.push_back(point.step_ms);
  if (times.empty()) return 1;
  const auto at = static_cast<std::ptrdiff_t>(kShownSteps * static_cast<double>(times.size() - 1));
  std::ranges::nth_element(times, times.begin() + at);
  double top = times[static_cast<std::size_t>(at)];
  for (const RunSegment& segment : course.segments) top = std::max(top, segment.mean * 1e3);
  return std::max(kRoomAbove * top, 1e-6);
}

/// The share of the layers that is frozen, of the height of the chart.
html::Series frozen_area(const RunCourse& course, const html::Plot& plot) {
  html::Series area{.style = "frozen", .points = {}, .steps = true, .area = true};
  const double scale = plot.high / course.layers;
  const auto add = [&](double step, double layers) {
    if (!std::isnan(layers)) area.points.push_back({step, layers * scale});
  };
  add(plot.left, course.changes.front().frozen_before);
  for (const RunChange& change : course.changes)
    add(std::clamp(change.step + 0.5, plot.left, plot.right), change.frozen);
  if (!area.points.empty()) area.points.push_back({plot.right, area.points.back().y});
  return area;
}

/// Step times over steps, the means of the segments, and a mark for each change.
html::Plot strip_plot(const std::vector<MetricsPoint>& metrics, const RunCourse& course) {
  html::Plot plot{.x_unit = "step",
                  .low = 0,
                  .high = top_of(metrics, course),
                  .left = metrics.front().step,
                  .right = metrics.back().step,
                  .series = {},
                  .height = 200};
  if (course.layers > 0) plot.series.push_back(frozen_area(course, plot));
  html::Series times{.style = "faint", .points = {}, .name = "this step"};
  for (const MetricsPoint& point : metrics)
    if (html::drawable(point.step_ms))
      times.points.push_back({point.step, std::min(point.step_ms, plot.high)});
  plot.series.push_back(std::move(times));
  html::Series means{.style = "saved", .points = {}, .steps = true, .name = "mean of the segment"};
  for (const RunSegment& segment : course.segments)
    for (const double step : {segment.first, segment.last})
      means.points.push_back({step, segment.mean * 1e3});
  plot.series.push_back(std::move(means));
  plot.marks = change_marks(course, plot);
  return plot;
}

std::string strip(const std::vector<MetricsPoint>& metrics, const RunCourse& course) {
  if (metrics.size() < 2) return "";
  const html::Plot plot = strip_plot(metrics, course);
  const auto cut = std::ranges::count_if(
      metrics, [&](const MetricsPoint& point) { return point.step_ms > plot.high; });
  std::string text = "<figure><div class=\"bar\">" + html::key("f", "time of a step");
  if (course.layers > 0) text += html::key("kf", "frozen layers; full height: all");
  text +=
      "<span class=\"key\"><svg><line class=\"change\" x1=\"7\" x2=\"7\" y1=\"0\" y2=\"14\"/>"
      "</svg>a change</span>" +
      html::save_button("changes") + "</div>\n";
  text +=
      "<figcaption>time of a step, ms <span>faint: each step; strong: the mean between two "
      "changes" +
      (cut > 0 ? fmt::format("; {} longer than the chart is high", counted(cut, "step"))
               : std::string()) +
      "</span></figcaption>" + html::plot(plot) + "</figure>\n";
  return text;
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
      "<tr><td>{}</td><td>{}</td><td>{}</td><td class=\"rung\"><svg><rect class=\"f\" width=\"{}\" "
      "height=\"12\"/></svg></td><td>{}</td><td>{}</td><td>{:.2f}×</td></tr>\n",
      steps, html::escape(layout), frozen, html::percent(seconds / longest), duration_text(seconds),
      middle, speed_up);
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

/// What was decided besides the changes.
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

std::vector<html::Mark> change_marks(const RunCourse& course, const html::Plot& plot) {
  std::vector<html::Mark> marks;
  for (std::size_t i = 0; i < std::min(course.changes.size(), kMaxTableRows); ++i) {
    const RunChange& change = course.changes[i];
    marks.push_back(
        {.x = std::clamp(change.step + 0.5, plot.left, plot.right),
         .label = fmt::format("{}", i + 1),
         .title = fmt::format("after step {:.0f}: {}", change.step, change_text(course, change))});
  }
  return marks;
}

std::string changes_section(const RunFiles& run, const RunCourse& course) {
  const std::string notes = notes_list(course);
  if (course.changes.empty()) return notes.empty() ? "" : "<h2>Changes</h2>\n" + notes;
  return fmt::format(
             "<h2>Changes</h2>\n<p class=\"lead\">{} between steps, which took {} in all, besides "
             "the times of the steps.</p>\n",
             counted(std::ssize(course.changes), "change"),
             duration_text(course.change_seconds())) +
         strip(run.metrics, course) + change_table(course) + ladder_table(course) + notes;
}

}  // namespace concertina
