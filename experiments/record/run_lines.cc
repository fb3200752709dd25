#include "experiments/record/run_lines.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>
#include <filesystem>

#include "io/log_lines.h"

namespace concertina {
namespace {

/// "weight gradients left out: 25%, 0% of stages 0 to 1"; empty of an event that says nothing of
/// them.
std::string skips_text(const nlohmann::json& event) {
  const auto shares = event.find("skipped_by_stage");
  if (shares == event.end() || !shares->is_array() || shares->empty()) return "";
  std::vector<std::string> texts;
  for (const nlohmann::json& share : *shares)
    texts.push_back(share.is_number() ? fmt::format("{:.0f}%", 100 * share.get<double>()) : "?");
  std::string text = texts.size() == 1
                         ? fmt::format("weight gradients left out: {} of each step", texts[0])
                         : fmt::format("weight gradients left out: {} of stages 0 to {}",
                                       fmt::join(texts, ", "), texts.size() - 1);
  if (const double ratio = number_in(event, "predicted_step_ratio"); !std::isnan(ratio))
    text += fmt::format("; predicted {:.2f} of a step's time", ratio);
  return text;
}

/// "cached activations of the first 4 layers: read".
std::string cache_text(const nlohmann::json& event, const std::vector<int>& layer_ends) {
  const double units = number_in(event, "units");
  const auto on = event.find("on");
  if (std::isnan(units) || on == event.end() || !on->is_boolean()) return "";
  const auto layers = std::ranges::upper_bound(layer_ends, units) - layer_ends.begin();
  const std::string of =
      layer_ends.empty() ? fmt::format("{:.0f} units", units) : fmt::format("{} layers", layers);
  return fmt::format("cached activations of the first {}: {}", of,
                     on->get<bool>() ? "read" : "not read");
}

}  // namespace

Figure number_in(const nlohmann::json& line, const char* key) {
  const auto at = line.find(key);
  return at != line.end() && at->is_number() ? at->get<double>() : std::nan("");
}

std::string text_in(const nlohmann::json& line, const char* key) {
  const auto at = line.find(key);
  return at != line.end() && at->is_string() ? at->get<std::string>() : "";
}

std::vector<nlohmann::json> read_lines(const std::string& path) {
  std::vector<nlohmann::json> lines;
  std::uint64_t from = 0;
  each_log_object(path, from, [&](nlohmann::json line, bool) { lines.push_back(std::move(line)); });
  return lines;
}

void LineFollower::skip() {
  std::error_code error;
  const std::uintmax_t size = std::filesystem::file_size(path_, error);
  read_ = error ? 0 : size;
}

std::vector<nlohmann::json> LineFollower::look() {
  std::vector<nlohmann::json> lines;
  each_log_object(path_, read_, [&](nlohmann::json line, bool whole) {
    if (whole) lines.push_back(std::move(line));
  });
  return lines;
}

std::vector<MetricsPoint> metrics_of(const std::vector<nlohmann::json>& lines) {
  std::vector<MetricsPoint> points;
  for (const nlohmann::json& line : lines) {
    MetricsPoint point{.step = number_in(line, "step"), .time = text_in(line, "time")};
    if (!std::isfinite(point.step)) continue;
#define NUMBER(type, name, ...) point.name = number_in(line, #name);
#define OPTIONAL(type, name, ...) \
  if (line.contains(#name)) point.name = number_in(line, #name);
#define TEXT(name, ...) point.name = text_in(line, #name);
#include "io/step_metrics.inc"
    if (!(point.batches >= 1 && point.batches < 1e6)) point.batches = 1;
    // They are positive once they were measured; a log that has 0 did not measure them.
    for (Figure* const rate : {&point.tokens_per_s, &point.step_ms})
      if (!(*rate > 0)) *rate = kNoFigure;
    points.push_back(std::move(point));
  }
  return points;
}

std::vector<ValidationPoint> validations_of(const std::vector<nlohmann::json>& events) {
  std::vector<ValidationPoint> points;
  const auto count = [](const nlohmann::json& json, const char* key) {
    const double value = number_in(json, key);
    return value >= 0 && value < 1e18 ? static_cast<std::int64_t>(value) : 0;
  };
  for (const nlohmann::json& line : events) {
    if (!is_event(line, EventKind::validation) || !std::isfinite(number_in(line, "step"))) continue;
    points.push_back({.step = number_in(line, "step"),
                      .loss = number_in(line, "loss"),
                      .tokens = count(line, "tokens"),
                      .of_tokens = count(line, "of_tokens"),
                      .seconds = number_in(line, "seconds"),
                      .time = text_in(line, "time"),
                      .data = text_in(line, "data"),
                      .measure = text_in(line, "measure")});
    for (const auto& [key, value] : line.items())
      if (value.is_number()) points.back().figures[key] = value.get<double>();
  }
  return points;
}

std::vector<RunNote> notes_of(const std::vector<nlohmann::json>& events,
                              const std::vector<int>& layer_ends) {
  std::vector<RunNote> notes;
  std::string last_skips, last_cache;
  for (const nlohmann::json& event : events) {
    const double step = number_in(event, "step");
    if (std::isnan(step)) continue;
    const auto add = [&](const std::string& text, const std::string& why, std::string& last) {
      if (text.empty() || text == last) return;
      last = text;
      notes.push_back({step, why.empty() ? text : fmt::format("{} ({})", text, why)});
    };
    if (is_event(event, EventKind::freeze)) add(skips_text(event), "", last_skips);
    if (is_event(event, EventKind::cache))
      add(cache_text(event, layer_ends), text_in(event, "why"), last_cache);
  }
  return notes;
}

}  // namespace concertina
