// The metrics of a launch of `train`: result.json. Invariant: keys are stable and their names
// include units; unknown metrics are omitted and non-finite ones are null.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string_view>
#include <vector>

#include "core/model/model_spec.h"
#include "experiments/cache/cache_room.h"
#include "experiments/config/config.h"
#include "experiments/evaluate/evaluate.h"
#include "parallel/runtime/update.h"

namespace concertina {

/// FLOP/s of one rank's device: `run.peak_tflops`, or the rate of dense matrix products in
/// `numerics.compute` from the data sheet of the GPU named by `device`. 0 if unknown.
double peak_flops_per_s(const RunConfig& config, std::string_view device);

/// Metrics of the steps of one launch.
class LaunchMetrics {
 public:
  /// `tokens`: per step. All metrics count steps of the run, several of which may be executed at
  /// once.
  explicit LaunchMetrics(double tokens) : tokens_(tokens) {}

  /// Adds `count` steps of `seconds` each.
  void add(int count, double seconds, double bubble);

  std::int64_t steps() const { return static_cast<std::int64_t>(seconds_.size()); }
  /// Total seconds of all steps.
  double seconds() const { return sum_; }
  double median_seconds() const;
  /// Total tokens over total seconds: a mean of rates would overstate the throughput.
  double tokens_per_s() const {
    return sum_ > 0 ? tokens_ * static_cast<double>(steps()) / sum_ : 0;
  }
  /// Idle share of the total seconds, averaged over ranks.
  double bubble() const { return sum_ > 0 ? idle_ / sum_ : 0; }

 private:
  double tokens_;
  std::vector<double> seconds_;  // by step
  double sum_ = 0, idle_ = 0;
};

/// The part of result.json that does not depend on the launch's steps.
struct LaunchSummary {
  std::int64_t step = 0;                            // completed in the whole run
  std::optional<StepResult> last;                   // last step of this launch
  Validation validation;                            // without targets: none
  double launch_seconds = 0;                        // so far
  double eval_seconds = 0, checkpoint_seconds = 0;  // part of launch_seconds
  std::uint64_t peak_bytes = 0;                     // of the rank with the most
  std::optional<CacheUse> cache;                    // of this launch
};

/// Keys: steps, launch_steps, loss, grad_norm, lr, validation_loss, validation_tokens,
/// validation_of_tokens, the task's metrics and measure_json() with the same prefix, tokens_per_s,
/// median_step_ms, steps_s, launch_s, eval_s, checkpoint_s, bubble, peak_bytes, cache (an object).
nlohmann::ordered_json to_json(const LaunchMetrics& metrics, const LaunchSummary& summary);

}  // namespace concertina
