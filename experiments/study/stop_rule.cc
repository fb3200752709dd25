#include "experiments/study/stop_rule.h"

#include <fmt/format.h>

#include <cmath>
#include <fstream>
#include <nlohmann/json.hpp>

#include "core/number_text.h"
#include "io/run_files.h"

namespace concertina {

std::string StopRule::see(std::int64_t step, double value) {
  const bool better = std::isnan(best_) || (minimise_ ? value < best_ : value > best_);
  no_better_ = better ? 0 : no_better_ + 1;
  if (better) best_ = value;
  if (step < stop_.after) return {};
  const std::string now =
      fmt::format("{} is {} after step {}", stop_.metric, number_text(value), step);
  // Not a number is neither above nor below: it is no better than any.
  if (std::isnan(value)) return now;
  if (stop_.has_above && value > stop_.above) return fmt::format("{}: above {}", now, stop_.above);
  if (stop_.has_below && value < stop_.below) return fmt::format("{}: below {}", now, stop_.below);
  if (stop_.patience > 0 && no_better_ >= stop_.patience)
    return fmt::format("{}: no better than {} for {}", now, number_text(best_),
                       counted(no_better_, "value"));
  return {};
}

RunFollower::RunFollower(const std::string& run, const StopSection& stop, bool minimise)
    : metric_(stop.metric == "validation_loss" ? "loss" : stop.metric),
      validation_(stop.metric == "validation_loss"),
      rule_(stop, minimise) {
  path_ = run_file(run, validation_ ? kEventsFile : kMetricsFile);
}

std::string RunFollower::look() {
  std::ifstream file(path_);
  file.seekg(read_);
  for (std::string line; std::getline(file, line) && !file.eof();) {
    read_ += static_cast<std::int64_t>(line.size()) + 1;
    const nlohmann::json json = nlohmann::json::parse(line, nullptr, false);
    if (!json.is_object() || !json.contains("step") || !json["step"].is_number()) continue;
    if (validation_ && json.value("event", "") != "validation") continue;
    const auto found = json.find(metric_);
    if (found == json.end()) continue;
    const double value = found->is_number() ? found->get<double>() : std::nan("");
    if (std::string why = rule_.see(json["step"], value); !why.empty()) return why;
  }
  return {};
}

}  // namespace concertina
