#include "io/metrics.h"

#include <array>
#include <cmath>
#include <string_view>

#include "core/clock.h"
#include "core/log.h"
#include "io/log_lines.h"
#include "io/strict_json.h"

namespace concertina {
namespace {

// Invalid UTF-8 (in a path, for example) must not abort a run: it is replaced with U+FFFD.
std::string dump(const nlohmann::ordered_json& object, int indent) {
  return object.dump(indent, ' ', false, nlohmann::ordered_json::error_handler_t::replace);
}

/// Whether a line of the old file is kept when a run resumes at `last_step`.
bool keep(std::string_view line, std::int64_t last_step, const std::string& path) {
  const auto object = parse_json(line);
  if (!object.is_object()) {
    log::warn("{}: dropped a line of {} bytes that is not a JSON object", path, line.size());
    return false;
  }
  const auto step = object.find("step");
  return step == object.end() || !step->is_number() || step->get<double>() <= double(last_step);
}

/// Returns the lines to keep. A final line without a line ending was left by a killed run.
std::string kept_lines(const std::string& content, std::int64_t last_step,
                       const std::string& path) {
  std::string kept;
  for (std::size_t begin = 0, end; (end = content.find('\n', begin)) != std::string::npos;
       begin = end + 1) {
    const auto line = std::string_view(content).substr(begin, end - begin);
    if (keep(line, last_step, path)) kept.append(line) += '\n';
  }
  return kept;
}

}  // namespace

nlohmann::ordered_json to_json(const StepMetrics& metrics) {
  nlohmann::ordered_json line{{"step", metrics.step}};
#define NUMBER(type, name, ...) line[#name] = metrics.name;
#define OPTIONAL(type, name, absent, ...) \
  if (!std::isnan(double(metrics.name)) && metrics.name != (absent)) line[#name] = metrics.name;
#define TEXT(name, ...) line[#name] = metrics.name;
#include "io/step_metrics.inc"
  line["time"] = metrics.time;
  return line;
}

std::vector<MetricNumber> metric_numbers(const StepMetrics& metrics) {
  std::vector<MetricNumber> numbers;
#define NUMBER(type, name, unit, better, board, meaning) \
  numbers.push_back({#name, *board == 0 ? "" : board "/" #name, static_cast<double>(metrics.name)});
#define OPTIONAL(type, name, ...) numbers.push_back({#name, "", static_cast<double>(metrics.name)});
#include "io/step_metrics.inc"
  return numbers;
}

std::string_view name_of(EventKind kind) {
  constexpr std::array<std::string_view, 13> kNames{
      "start",         "stop",       "stall",  "straggler", "checkpoint",
      "no checkpoint", "validation", "freeze", "layout",    "layout outcome",
      "refused",       "fault",      "cache"};
  static_assert(kNames[static_cast<std::size_t>(EventKind::cache)] == "cache");
  return kNames.at(static_cast<std::size_t>(kind));
}

nlohmann::ordered_json event_line(std::int64_t step, EventKind kind,
                                  const nlohmann::ordered_json& facts) {
  nlohmann::ordered_json line{{"step", step}, {"event", name_of(kind)}};
  line.update(facts);
  line["time"] = utc_text();
  return line;
}

bool is_event(const nlohmann::json& line, EventKind kind) {
  const auto event = line.find("event");
  return event != line.end() && *event == name_of(kind);
}

JsonLines::JsonLines(const std::string& path, std::int64_t last_step)
    : file_(path, File::Mode::append) {
  if (file_.size() == 0) return;
  const std::string content = read_file(path, kMostLogBytes);
  const std::string kept = kept_lines(content, last_step, path);
  if (kept == content) return;
  atomic_replace(path, kept);
  file_ = File(path, File::Mode::append);
}

void JsonLines::write(const nlohmann::ordered_json& object) {
  constexpr std::size_t kMostBytes = 64 << 20;
  if (waiting_.size() > kMostBytes) waiting_.clear();
  waiting_ += dump(object, -1) + '\n';
  file_.append_whole(waiting_);
  waiting_.clear();
}

void write_result(const std::string& path, const nlohmann::ordered_json& result) {
  atomic_replace(path, dump(result, 2) + '\n');
}

}  // namespace concertina
