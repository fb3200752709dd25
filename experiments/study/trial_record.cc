#include "experiments/study/trial_record.h"

#include <fmt/format.h>

#include <filesystem>
#include <limits>
#include <nlohmann/json.hpp>

#include <set>

#include "core/error.h"
#include "experiments/machine/exit.h"
#include "experiments/record/report_metrics.h"
#include "experiments/record/run_lines.h"
#include "experiments/record/training_clock.h"
#include "experiments/study/config_values.h"
#include "io/log_lines.h"
#include "io/run_files.h"
#include "io/sha256.h"

namespace concertina {
namespace {

using Json = nlohmann::ordered_json;
namespace fs = std::filesystem;

constexpr const char* kDigest = "digest";

std::string dumped(const Json& json, int indent = -1) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

/// The last line that is a JSON object; null if there is none.
Json last_line(const std::string& path) {
  const std::vector<nlohmann::json> lines = read_lines(path);
  return lines.empty() ? Json() : Json(lines.back());
}

void flatten(const Json& json, const std::string& path, TrialRecord& record) {
  for (const auto& [key, value] : json.items()) {
    const std::string name = path.empty() ? key : path + "." + key;
    if (value.is_object())
      flatten(value, name, record);
    else if (value.is_number())
      record.metrics[name] = value.get<double>();
    else if (value.is_string() && key != "time")
      record.facts[name] = value.get<std::string>();
  }
}

/// The distinct values at `key` of a launch's hosts: "a" or "a, b".
std::string of_hosts(const Json& launch, const char* key) {
  std::set<std::string> values;
  for (const Json& host : launch.value("hosts", Json::array()))
    if (host.is_object() && host.contains(key) && host[key].is_string())
      values.insert(host[key].get<std::string>());
  return fmt::format("{}", fmt::join(values, ", "));
}

/// Reads the environment of the last launch.
void take_launch(const Json& launch, TrialRecord& record) {
  if (!launch.is_object()) return;
  for (const char* key :
       {"version", "commit", "program", "onednn", "device", "isa", "compute", "text"})
    if (launch.contains(key) && launch[key].is_string()) record.facts[key] = launch[key];
  record.facts["host"] = of_hosts(launch, "host");
  record.facts["processor"] = of_hosts(launch, "processor");
  for (const Json& host : launch.value("hosts", Json::array()))
    if (host.is_object() && host.contains("load") && host["load"].is_number())
      record.metrics["load"] = std::max(record.metrics["load"], host["load"].get<double>());
  const Json libraries = launch.value("libraries", Json::object());
  if (libraries.is_object() && !libraries.empty()) record.facts["libraries"] = dumped(libraries);
}

/// JSON has no NaN or infinity; such metrics are written as null.
double metric_of(const Json& value) {
  return value.is_null() ? std::numeric_limits<double>::quiet_NaN() : value.get<double>();
}

/// If a run was killed after its final checkpoint, its last launch trained no steps, so
/// result.json lacks the per-step metrics, which are in the log.
void add_logged_steps(TrialRecord& record) {
  if (!record.metrics.contains("steps") || record.metrics.contains("loss")) return;
  const std::vector<nlohmann::json> lines = read_lines(run_file(record.directory, kMetricsFile));
  if (lines.empty() || number_in(lines.back(), "step") != record.metrics["steps"]) return;
  Json logged = to_json(total(metrics_of(lines)));
  for (const char* key : {"loss", "lr", "grad_norm", "peak_bytes"})
    for (const nlohmann::json& line : lines)
      if (line.contains(key)) logged[key] = line[key];
  for (const auto& [key, value] : logged.items())
    if (value.is_number() || value.is_null()) record.metrics.emplace(key, metric_of(value));
}

/// The evaluation that represents the run: its best checkpoint's or, for an unfinished run, the
/// latest. Null: result.json's.
const ValidationPoint* evaluation_of(const RunLog& log, const TrialRecord& record) {
  if (log.validations.empty()) return nullptr;
  if (!record.metrics.contains("validation_loss")) return &log.validations.back();
  const auto best = record.metrics.find("best_step");
  if (best == record.metrics.end() ||
      setting_text(keys_of_run(record.directory)["checkpoint.best"]).empty())
    return nullptr;
  const auto found = std::ranges::find(log.validations, best->second, &ValidationPoint::step);
  return found == log.validations.end() ? nullptr : &*found;
}

void take_evaluation(const ValidationPoint& point, TrialRecord& record) {
  std::erase_if(record.metrics,
                [](const auto& metric) { return metric.first.starts_with("validation_"); });
  for (const auto& [name, value] : point.metrics)
    if (name != "step" && name != "seconds") record.metrics["validation_" + name] = value;
  for (const auto& [name, text] :
       {std::pair("data", point.data), std::pair("measure", point.measure)})
    if (!text.empty()) record.facts[std::string("validation_") + name] = text;
}

/// Throws Json::exception for a value of the wrong type.
TrialRecord record_of(const Json& json, const std::string& source) {
  TrialRecord record;
  record.number = json.at("trial");
  record.state = trial_state(json.at("state"), source);
  for (const auto& [key, value] : json.at("settings").items())
    record.settings.emplace_back(key, value);
  for (const auto& [key, value] : json.at("figures").items())
    record.metrics[key] = metric_of(value);
  json.at("facts").get_to(record.facts);
  record.error = json.value("error", "");
  record.study = json.value("study", "");
  for (const Json& rung : json.value("rungs", Json::array()))
    record.rungs.push_back({rung.at("steps"), metric_of(rung.at("metric"))});
  return record;
}

}  // namespace

nlohmann::ordered_json to_json(const TrialRecord& record) {
  Json json = {{"trial", record.number},     {"state", name_of(record.state)},
               {"error", record.error},      {"directory", record.directory},
               {"settings", Json::object()}, {"figures", record.metrics},
               {"facts", record.facts}};
  for (const auto& [key, value] : record.settings) json["settings"][key] = value;
  for (const TrialRung& rung : record.rungs)
    json["rungs"].push_back({{"steps", rung.steps}, {"metric", rung.metric}});
  return json;
}

std::string record_text(const TrialRecord& record) {
  Json json = to_json(record);
  json["study"] = record.study;
  json[kDigest] = sha256_hex(dumped(json));
  return dumped(json, 2) + "\n";
}

TrialRecord read_record(const std::string& text, const std::string& source) {
  Json json = parse_json<Json>(text);
  try {
    const Json digest = json.at(kDigest);
    json.erase(kDigest);
    if (digest == sha256_hex(dumped(json))) return record_of(json, source);
  } catch (const Json::exception&) {
  }
  throw_input("the trial's record was edited", source,
              "restore the file, or remove its directory to repeat the trial with `study run`");
}

void harvest(TrialRecord& record) {
  if (const Json result = read_log_json<Json>(run_file(record.directory, kResultFile));
      result.is_object())
    flatten(result, "", record);
  add_logged_steps(record);
  const RunLog log = read_log(record.directory);
  if (const ValidationPoint* const point = evaluation_of(log, record))
    take_evaluation(*point, record);
  if (const StepCurve seconds = training_seconds(log);
      !seconds.value.empty() && seconds.value.back() > 0)
    record.metrics["train_s"] = seconds.value.back();
  take_launch(last_line(run_file(record.directory, kLaunchesFile)), record);
}

std::string error_in_log(const std::string& log, std::uint64_t begin) {
  constexpr std::uint64_t kMostRead = 4 << 20;  // a launcher may print without limit
  std::error_code error;
  const std::uint64_t size = fs::file_size(log, error);
  if (error) return {};
  std::uint64_t from = std::max(begin, size - std::min(size, kMostRead));
  std::string message, tail;
  bool in_message = false;
  each_log_line(log, from, [&](std::string_view text, bool) {
    const std::string line(text);
    const bool starts = line.find("concertina: error") != std::string::npos;
    if (starts) message = line.substr(line.find("error"));
    // "  at: " and "  try: " are part of the error.
    if (in_message && !starts && line.starts_with("  ")) message += ";" + line.substr(1);
    in_message = starts || (in_message && line.starts_with("  "));
    if (!line.empty()) tail = line;
  });
  constexpr std::size_t kMost = 2000;
  const std::string& text = message.empty() ? tail : message;
  return text.size() <= kMost ? terminal_text(text) : terminal_text(text.substr(0, kMost)) + " ...";
}

std::string exit_text(int code) {
  constexpr int kSignal = 128, kSignals = 64;
  if (code > kSignal && code <= kSignal + kSignals)
    return fmt::format("killed by signal {} (exit code {}); try: study run with --retry-failed",
                       code - kSignal, code);
  return fmt::format("exit code {}", code);
}

}  // namespace concertina
