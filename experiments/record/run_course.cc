#include "experiments/record/run_course.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <set>

#include "core/error.h"
#include "core/number_text.h"
#include "core/step_history.h"
#include "experiments/cache/cache_room.h"
#include "experiments/config/config_toml.h"
#include "experiments/run/planning.h"
#include "io/run_files.h"

namespace concertina {
namespace {

constexpr Figure kUnknown = kNoFigure;

double layers_in(double units, const std::vector<int>& layer_ends) {
  if (std::isnan(units) || (units > 0 && layer_ends.empty())) return kUnknown;
  return static_cast<double>(std::ranges::upper_bound(layer_ends, units) - layer_ends.begin());
}

RunChange unknown_change(double step) {
  RunChange change;
  change.step = step;
  for (double RunChange::*value :
       {&RunChange::frozen_before, &RunChange::frozen, &RunChange::cost, &RunChange::predicted_cost,
        &RunChange::moved_bytes, &RunChange::predicted_step_before, &RunChange::predicted_step,
        &RunChange::measured_step})
    change.*value = kUnknown;
  return change;
}

void keep_known(double& value, double next) {
  if (!std::isnan(next)) value = next;
}

void add_known(double& value, double next) {
  if (!std::isnan(next)) value = (std::isnan(value) ? 0 : value) + next;
}

/// Adds what one event says, in the order of the file.
void add_event(const nlohmann::json& event, const std::vector<int>& layer_ends, RunChange& change) {
  const std::string from = text_in(event, "from"), why = text_in(event, "why");
  std::string to = text_in(event, "to");
  if (text_in(event, "event") == "freeze") {
    to = text_in(event, "layout");
    keep_known(change.frozen_before, layers_in(number_in(event, "units_before"), layer_ends));
    keep_known(change.frozen, layers_in(number_in(event, "units"), layer_ends));
    keep_known(change.frozen, number_in(event, "layers"));
  }
  if (change.layout_before.empty()) change.layout_before = from;
  if (!to.empty()) change.layout = to;
  if (!why.empty()) change.why += (change.why.empty() ? "" : "; ") + why;
  add_known(change.cost, number_in(event, "seconds"));
  add_known(change.moved_bytes, number_in(event, "moved_bytes"));
  keep_known(change.predicted_cost, number_in(event, "predicted_move_s"));
  keep_known(change.predicted_step, number_in(event, "predicted_step_s"));
  if (std::isnan(change.predicted_step_before))
    keep_known(change.predicted_step_before, number_in(event, "predicted_step_before_s"));
}

/// Whether the event is that of a change, and no decision to leave all as it is.
bool tells_of_change(const nlohmann::json& event) {
  const std::string kind = text_in(event, "event");
  if (kind == "freeze") return event.contains("units_before");
  return kind == "layout" &&
         (text_in(event, "from") != text_in(event, "to") || number_in(event, "seconds") > 0);
}

using Changes = std::map<double, RunChange>;  // by step

/// A decision to keep the layout after a freeze, which foresees the next steps all the same; or how
/// the latest prediction did: a later one is of no change.
void add_forecast(const nlohmann::json& event, Changes& changes) {
  const double step = number_in(event, "step");
  const std::string kind = text_in(event, "event");
  if (std::isnan(step)) return;
  if (const auto at = changes.find(step); kind == "layout" && at != changes.end()) {
    const std::string why = text_in(event, "why");
    if (!why.empty()) at->second.why += (at->second.why.empty() ? "" : "; ") + why;
    keep_known(at->second.predicted_step, number_in(event, "predicted_step_s"));
  }
  const auto after = changes.lower_bound(step);
  if (kind != "layout outcome" || after == changes.begin()) return;
  RunChange& change = std::prev(after)->second;
  if (!std::isnan(change.measured_step)) return;
  keep_known(change.predicted_step, number_in(event, "predicted_step_s"));
  keep_known(change.measured_step, number_in(event, "measured_step_s"));
}

Changes changes_told(const std::vector<nlohmann::json>& events,
                     const std::vector<int>& layer_ends) {
  std::set<double> refused;
  for (const nlohmann::json& event : events)
    if (const double step = number_in(event, "step");
        text_in(event, "event") == "refused" && !std::isnan(step))
      refused.insert(step);
  Changes changes;
  for (const nlohmann::json& event : events) {
    const double step = number_in(event, "step");
    if (!tells_of_change(event) || std::isnan(step) || refused.contains(step)) continue;
    const auto at = changes.try_emplace(step, unknown_change(step)).first;
    add_event(event, layer_ends, at->second);
  }
  for (const nlohmann::json& event : events)
    if (!tells_of_change(event)) add_forecast(event, changes);
  return changes;
}

bool differ(double a, double b) {
  return !std::isnan(a) && !std::isnan(b) && a != b;
}

/// Adds those that only the steps show, and what was before and after each one.
void add_seen(const std::vector<MetricsPoint>& metrics, const std::vector<nlohmann::json>& launches,
              const std::vector<int>& layer_ends, Changes& changes) {
  for (std::size_t i = 1; i < metrics.size(); ++i) {
    const MetricsPoint &before = metrics[i - 1], &after = metrics[i];
    const bool moved =
        !before.layout.empty() && !after.layout.empty() && before.layout != after.layout;
    auto at = changes.lower_bound(before.step);
    bool told = at != changes.end() && at->first < after.step;
    if (!told && (moved || differ(before.frozen_units, after.frozen_units))) {
      at = changes.emplace(before.step, unknown_change(before.step)).first;
      told = true;
      const auto resumes = [&](const nlohmann::json& launch) {
        return number_in(launch, "from") == before.step;
      };
      if (std::ranges::any_of(launches, resumes)) at->second.why = "resumed by another launch";
    }
    if (!told) continue;
    RunChange& change = at->second;
    if (change.layout_before.empty()) change.layout_before = before.layout;
    if (change.layout.empty()) change.layout = after.layout;
    if (std::isnan(change.frozen_before))
      change.frozen_before = layers_in(before.frozen_units, layer_ends);
    if (std::isnan(change.frozen)) change.frozen = layers_in(after.frozen_units, layer_ends);
  }
}

/// Takes what is still not known of a change from the one before.
void carry_over(std::vector<RunChange>& changes) {
  for (std::size_t i = 0; i < changes.size(); ++i) {
    RunChange& change = changes[i];
    if (i > 0 && std::isnan(change.frozen_before)) change.frozen_before = changes[i - 1].frozen;
    if (i > 0 && change.layout_before.empty()) change.layout_before = changes[i - 1].layout;
    if (std::isnan(change.frozen)) change.frozen = change.frozen_before;
    if (change.layout.empty()) change.layout = change.layout_before;
  }
}

/// Counts points that have a time; steps of others are left out.
RunSegment segment_of(const std::vector<MetricsPoint>& metrics, double after, double last,
                      const std::vector<int>& layer_ends) {
  RunSegment segment{.frozen = kUnknown, .layout = {}};
  std::vector<double> times;
  for (const MetricsPoint& point : metrics) {
    if (!(point.step > after && point.step <= last)) continue;
    if (!std::isfinite(point.step_ms) || point.step_ms <= 0) continue;
    if (times.empty()) segment.first = point.step - point.batches + 1;
    segment.last = point.step;
    segment.layout = point.layout;
    segment.frozen = layers_in(point.frozen_units, layer_ends);
    times.push_back(point.step_ms * 1e-3);
    segment.steps += static_cast<std::int64_t>(point.batches);
    segment.seconds += point.batches * times.back();
  }
  if (times.empty()) return segment;
  const auto counted = times.begin() + (times.size() > 1 ? 1 : 0);
  segment.mean =
      std::accumulate(counted, times.end(), 0.0) / static_cast<double>(times.end() - counted);
  segment.median = median(std::move(times));
  return segment;
}

std::vector<RunSegment> segments_of(const std::vector<MetricsPoint>& metrics,
                                    const std::vector<RunChange>& changes,
                                    const std::vector<int>& layer_ends) {
  constexpr double kEnd = std::numeric_limits<double>::infinity();
  std::vector<RunSegment> segments;
  for (std::size_t i = 0; i <= changes.size(); ++i) {
    const double after = i == 0 ? -kEnd : changes[i - 1].step;
    RunSegment segment =
        segment_of(metrics, after, i == changes.size() ? kEnd : changes[i].step, layer_ends);
    if (segment.steps == 0) continue;
    if (std::isnan(segment.frozen) && !changes.empty())
      segment.frozen = i == 0 ? changes[0].frozen_before : changes[i - 1].frozen;
    if (!segments.empty()) segment.speed_up = segments[0].mean / segment.mean;
    segments.push_back(std::move(segment));
  }
  return segments;
}

/// A step or a number of layers.
nlohmann::ordered_json whole(double value) {
  if (!(std::abs(value) < 1e15)) return value;
  return static_cast<std::int64_t>(value);
}

std::string layers_text(double layers) {
  return std::isnan(layers) ? "?" : fmt::format("{:.0f}", layers);
}

std::string speed_text(const RunCourse& course, const RunChange& change) {
  const RunSegment* const segment = course.segment_after(change);
  std::string text;
  if (segment != nullptr) text = fmt::format("steps of {}", duration_text(segment->mean));
  if (!std::isnan(change.predicted_step))
    text += fmt::format("{}predicted {}", text.empty() ? "steps " : ", ",
                        duration_text(change.predicted_step));
  if (segment != nullptr) text += fmt::format(": {:.2f}x as fast as at first", segment->speed_up);
  return text;
}

}  // namespace

double RunCourse::change_seconds() const {
  double seconds = 0;
  for (const RunChange& change : changes) add_known(seconds, change.cost);
  return seconds;
}

double RunCourse::seconds() const {
  double seconds = change_seconds();
  for (std::size_t i = 0; i < segments.size(); ++i)
    seconds +=
        i == 0 ? segments[i].mean * static_cast<double>(segments[i].steps) : segments[i].seconds;
  return seconds;
}

std::int64_t RunCourse::steps() const {
  std::int64_t steps = 0;
  for (const RunSegment& segment : segments) steps += segment.steps;
  return steps;
}

double RunCourse::speed_up() const {
  return segments.empty() ? kUnknown : segments[0].mean * static_cast<double>(steps()) / seconds();
}

const RunSegment* RunCourse::segment_after(const RunChange& change) const {
  for (const RunSegment& segment : segments) {
    if (segment.first <= change.step) continue;
    const bool later = std::ranges::any_of(changes, [&](const RunChange& other) {
      return other.step > change.step && other.step < segment.first;
    });
    return later ? nullptr : &segment;
  }
  return nullptr;
}

RunCourse course_of(const std::vector<MetricsPoint>& metrics,
                    const std::vector<nlohmann::json>& events,
                    const std::vector<nlohmann::json>& launches,
                    const std::vector<int>& layer_ends) {
  Changes changes = changes_told(events, layer_ends);
  add_seen(metrics, launches, layer_ends, changes);
  RunCourse course{.layers = static_cast<int>(layer_ends.size()),
                   .changes = {},
                   .segments = {},
                   .notes = {},
                   .cache = {}};
  for (auto& [step, change] : changes) course.changes.push_back(std::move(change));
  carry_over(course.changes);
  course.segments = segments_of(metrics, course.changes, layer_ends);
  course.notes = notes_of(events, layer_ends);
  return course;
}

RunCourse course_of(const RunFiles& run) {
  std::vector<int> layer_ends;
  try {
    RunConfig config;
    read_config(run.config, kConfigFile, config);
    layer_ends = job_of(config).model.layer_ends;
  } catch (const Error&) {  // what the lines say is shown all the same
  }
  RunCourse course = course_of(run.metrics, run.events, run.launches, layer_ends);
  if (const std::optional<CacheUse> use = cache_use_from(run.result)) course.cache = text_of(*use);
  return course;
}

std::string change_text(const RunCourse& course, const RunChange& change) {
  const std::string of = course.layers > 0 ? fmt::format(" of {}", course.layers) : "";
  std::string text = layers_text(change.frozen);
  if (!(change.frozen_before == change.frozen))
    text = layers_text(change.frozen_before) + " -> " + text;
  text += of + " layers frozen";
  if (change.layout_before == change.layout) return text + ", " + change.layout;
  return fmt::format("{}, {} -> {}", text, change.layout_before, change.layout);
}

std::string course_text(const RunCourse& course) {
  std::string text;
  for (const RunNote& note : course.notes)
    text += fmt::format("after step {:.0f}: {}\n", note.step, note.text);
  if (!course.cache.empty()) text += course.cache + "\n";
  if (course.changes.empty()) return text;
  text += counted(std::ssize(course.changes), "change");
  if (course.change_seconds() > 0)
    text += fmt::format(", which took {}", duration_text(course.change_seconds()));
  text += "\n";
  for (const RunChange& change : course.changes) {
    text += fmt::format("  after step {:.0f}: {}{}\n", change.step, change_text(course, change),
                        change.why.empty() ? "" : fmt::format(" ({})", change.why));
    std::string cost, speed = speed_text(course, change);
    if (!std::isnan(change.cost)) cost = fmt::format("took {}", duration_text(change.cost));
    if (!std::isnan(change.predicted_cost))
      cost += fmt::format("{}predicted {}", cost.empty() ? "" : ", ",
                          duration_text(change.predicted_cost));
    if (!cost.empty() && !speed.empty()) cost += "; ";
    if (!(cost + speed).empty()) text += fmt::format("    {}{}\n", cost, speed);
  }
  if (course.segments.empty()) return text;
  return text + fmt::format("  the whole run, changes included: {:.2f}x as fast as at first\n",
                            course.speed_up());
}

nlohmann::ordered_json to_json(const RunCourse& course) {
  nlohmann::ordered_json json = {{"changes", nlohmann::ordered_json::array()},
                                 {"segments", nlohmann::ordered_json::array()},
                                 {"notes", nlohmann::ordered_json::array()},
                                 {"speed_up", course.speed_up()}};
  for (const RunChange& change : course.changes)
    json["changes"].push_back({{"step", whole(change.step)},
                               {"frozen_layers_before", whole(change.frozen_before)},
                               {"frozen_layers", whole(change.frozen)},
                               {"layout_before", change.layout_before},
                               {"layout", change.layout},
                               {"why", change.why},
                               {"seconds", change.cost},
                               {"predicted_s", change.predicted_cost},
                               {"moved_bytes", change.moved_bytes},
                               {"predicted_step_before_ms", change.predicted_step_before * 1e3},
                               {"predicted_step_ms", change.predicted_step * 1e3},
                               {"measured_step_ms", change.measured_step * 1e3}});
  for (const RunNote& note : course.notes)
    json["notes"].push_back({{"step", whole(note.step)}, {"text", note.text}});
  for (const RunSegment& segment : course.segments)
    json["segments"].push_back({{"first_step", whole(segment.first)},
                                {"last_step", whole(segment.last)},
                                {"steps", segment.steps},
                                {"layout", segment.layout},
                                {"frozen_layers", whole(segment.frozen)},
                                {"mean_step_ms", segment.mean * 1e3},
                                {"median_step_ms", segment.median * 1e3},
                                {"speed_up", segment.speed_up}});
  return json;
}

}  // namespace concertina
