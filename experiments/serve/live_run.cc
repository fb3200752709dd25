#include "experiments/serve/live_run.h"

#include <fmt/format.h>

#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdlib>
#include <filesystem>
#include <thread>
#include <utility>

#include "core/error.h"
#include "experiments/results/config_values.h"
#include "experiments/study/study_folder.h"
#include "io/file.h"
#include "io/run_files.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

constexpr std::size_t kMostPoints = 4000;  // of an answer: a picture shows no more
constexpr std::size_t kMostNotes = 30, kMostNoteText = 240;
constexpr std::uint64_t kLogTailBytes = 8 << 10;

std::uintmax_t bytes_of(const std::string& path) {
  std::error_code error;
  const std::uintmax_t bytes = fs::file_size(path, error);
  return error ? 0 : bytes;
}

/// Since the file was written last.
double seconds_since(const std::string& path) {
  std::error_code error;
  const fs::file_time_type written = fs::last_write_time(path, error);
  return error ? std::nan("")
               : std::chrono::duration<double>(fs::file_time_type::clock::now() - written).count();
}

nlohmann::json finite(double value) {
  return std::isfinite(value) ? nlohmann::json(value) : nlohmann::json();
}

/// What an event says, but for its step and time.
std::string note_text(nlohmann::json event) {
  for (const char* key : {"step", "time", "event"}) event.erase(key);
  std::string text;
  for (const auto& [key, value] : event.items())
    text += fmt::format("{}{}: {}", text.empty() ? "" : ", ", key,
                        value.is_string() ? value.get<std::string>() : value.dump());
  return text.size() <= kMostNoteText ? text : text.substr(0, kMostNoteText) + "...";
}

double steps_in(const std::string& directory) {
  return std::strtod(keys_of_run(directory)["run.steps"].c_str(), nullptr);
}

/// The last lines of a text file.
std::string tail_of(const std::string& path) {
  if (bytes_of(path) == 0) return {};
  const File file = open_regular(path, FilePlace::logged);
  const std::uint64_t bytes = file.size();
  std::string text(static_cast<std::size_t>(std::min(bytes, kLogTailBytes)), '\0');
  file.read_at(bytes - text.size(), std::as_writable_bytes(std::span(text)));
  if (text.size() < bytes) text.erase(0, text.find('\n') + 1);
  return text;
}

nlohmann::json load_of_host() {
  double load[3] = {};
  if (::getloadavg(load, 3) != 3) return nullptr;
  return {{"load", load[0]}, {"cores", std::thread::hardware_concurrency()}};
}

}  // namespace

LiveRun::LiveRun(std::string directory)
    : directory_(std::move(directory)),
      metrics_(run_file(directory_, kMetricsFile)),
      events_(run_file(directory_, kEventsFile)) {}

void LiveRun::look() {
  const std::uintmax_t bytes = bytes_of(run_file(directory_, kMetricsFile));
  if (bytes < metrics_bytes_) {
    metrics_ = LineFollower(run_file(directory_, kMetricsFile));
    events_ = LineFollower(run_file(directory_, kEventsFile));
    points_.clear(), validations_.clear(), notes_.clear();
    ++cuts_;
  }
  metrics_bytes_ = bytes;
  for (MetricsPoint& point : metrics_of(metrics_.look())) points_.push_back(std::move(point));
  const std::vector<nlohmann::json> events = events_.look();
  for (ValidationPoint& point : validations_of(events)) validations_.push_back(std::move(point));
  for (const nlohmann::json& event : events)
    if (const std::string kind = text_in(event, "event");
        kind != "validation" && kind != "checkpoint")
      notes_.push_back({{"step", finite(number_in(event, "step"))},
                        {"time", text_in(event, "time")},
                        {"event", kind},
                        {"text", note_text(event)}});
  if (notes_.size() > kMostNotes) notes_.erase(notes_.begin(), notes_.end() - kMostNotes);
  if (steps_ == 0) steps_ = steps_in(directory_);
}

/// Steps that were left out stand between the points: of each so many, one.
nlohmann::json LiveRun::points_after(double step) const {
  const auto first =
      std::ranges::find_if(points_, [&](const MetricsPoint& point) { return point.step > step; });
  const auto count = static_cast<std::size_t>(points_.end() - first);
  const std::size_t each = count / kMostPoints + 1;
  nlohmann::json points = nlohmann::json::array();
  for (std::size_t p = 0; p < count; ++p) {
    if (p % each != 0 && p + 1 != count) continue;
    const MetricsPoint& point = first[static_cast<std::ptrdiff_t>(p)];
    points.push_back({point.step, finite(point.loss), finite(point.tokens_per_s),
                      finite(point.step_ms), finite(point.bubble), finite(point.grad_norm)});
  }
  return points;
}

/// By the median of the last steps; NaN of a run without any.
double LiveRun::seconds_left() const {
  constexpr std::size_t kLast = 50;
  std::vector<double> ms;
  for (std::size_t p = points_.size() - std::min(points_.size(), kLast); p < points_.size(); ++p)
    if (std::isfinite(points_[p].step_ms)) ms.push_back(points_[p].step_ms);
  if (ms.empty() || steps_ == 0) return std::nan("");
  std::ranges::nth_element(ms, ms.begin() + std::ssize(ms) / 2);
  return std::max(0.0, steps_ - points_.back().step) * ms[ms.size() / 2] * 1e-3;
}

nlohmann::ordered_json LiveRun::state(double step) {
  const double cuts = cuts_;
  look();
  const double done = points_.empty() ? 0 : points_.back().step;
  const bool reset = cuts != cuts_ || done < step;
  nlohmann::json held_out = nlohmann::json::array();
  for (const ValidationPoint& point : validations_)
    held_out.push_back({point.step, finite(point.loss)});
  const std::string metrics = run_file(directory_, kMetricsFile);
  return {{"name", fs::path(directory_).filename().string()},
          {"done", done},
          {"steps", steps_},
          {"ended", bytes_of(run_file(directory_, kResultFile)) > 0 && done >= steps_},
          {"left_s", finite(seconds_left())},
          {"age_s", finite(seconds_since(metrics))},
          {"layout", points_.empty() ? "" : points_.back().layout},
          {"restarts", read_lines(run_file(directory_, kRestartsFile)).size()},
          {"host", load_of_host()},
          {"reset", reset},
          {"points", points_after(reset ? -1 : step)},
          {"validations", std::move(held_out)},
          {"notes", notes_}};
}

nlohmann::ordered_json LiveRun::summary() {
  look();
  return {{"done", points_.empty() ? 0 : points_.back().step},
          {"steps", steps_},
          {"loss", points_.empty() ? nlohmann::json() : finite(points_.back().loss)},
          {"left_s", finite(seconds_left())}};
}

LiveRun& LiveStudy::live(int trial, const std::string& directory) {
  return runs_.try_emplace(trial, directory).first->second;
}

nlohmann::ordered_json LiveStudy::state() {
  const StudyResults study = read_study(directory_);
  nlohmann::ordered_json trials = nlohmann::ordered_json::array();
  for (const TrialRecord& trial : study.trials) {
    nlohmann::ordered_json json = {{"number", trial.number},
                                   {"state", name_of(trial.state)},
                                   {"settings", settings_text(trial.settings)},
                                   {"error", trial.error}};
    const std::string run = fmt::format("{}/{}/run", directory_, trial.number);
    json["has_run"] = bytes_of(run_file(run, kConfigFile)) > 0;
    if (json["has_run"]) json.update(live(trial.number, run).summary());
    trials.push_back(std::move(json));
  }
  return {{"name", study.name}, {"trials", std::move(trials)}, {"host", load_of_host()}};
}

nlohmann::ordered_json LiveStudy::run(int trial, double step) {
  const std::string folder = fmt::format("{}/{}", directory_, trial);
  if (bytes_of(run_file(folder + "/run", kConfigFile)) == 0)
    throw_input(fmt::format("trial {} has no run yet", trial), folder, "a trial that has begun");
  nlohmann::ordered_json json = live(trial, folder + "/run").state(step);
  json["name"] = fmt::format("trial {}", trial);
  json["log"] = tail_of(folder + "/log.txt");
  return json;
}

}  // namespace concertina
