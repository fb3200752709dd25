// The figures of a launch of `train`: result.json.
// Invariant: keys are stable, their names have the units; a figure that is not known is left out,
// one that is not finite is null.
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

/// FLOP/s of one rank's device: `run.peak_tflops`, or that of dense products in
/// `numerics.compute` by the data sheet of the GPU that `device` names. 0: not known.
double peak_flops_per_s(const RunConfig& config, std::string_view device);

/// The figures of the steps of one launch.
class LaunchFigures {
 public:
  /// `tokens`: of a step. All figures are of the steps that the run counts, of which some may have
  /// been done at once.
  explicit LaunchFigures(double tokens) : tokens_(tokens) {}

  /// `count` steps took `seconds` each.
  void add(int count, double seconds, double bubble);

  std::int64_t steps() const { return static_cast<std::int64_t>(seconds_.size()); }
  /// The seconds of all steps.
  double seconds() const { return sum_; }
  double median_seconds() const;
  /// Tokens of all steps over their seconds: a mean of rates would say more than was done.
  double tokens_per_s() const {
    return sum_ > 0 ? tokens_ * static_cast<double>(steps()) / sum_ : 0;
  }
  /// Idle share of all these seconds, mean over ranks.
  double bubble() const { return sum_ > 0 ? idle_ / sum_ : 0; }

 private:
  double tokens_;
  std::vector<double> seconds_;  // by step
  double sum_ = 0, idle_ = 0;
};

/// The part of result.json that is not of its steps.
struct LaunchSummary {
  std::int64_t step = 0;                            // done, of the whole run
  std::optional<StepResult> last;                   // step of this launch
  Validation validation;                            // over no targets: none
  double launch_seconds = 0;                        // so far
  double eval_seconds = 0, checkpoint_seconds = 0;  // of them
  std::uint64_t peak_bytes = 0;                     // of the largest rank
  std::optional<CacheUse> cache;                    // of this launch
};

/// Keys: steps, launch_steps, loss, grad_norm, lr, validation_loss, validation_tokens,
/// validation_of_tokens, the task's metrics and measure_json() likewise, tokens_per_s,
/// median_step_ms, steps_s, launch_s, eval_s, checkpoint_s, bubble, peak_bytes, cache (an object).
nlohmann::ordered_json to_json(const LaunchFigures& figures, const LaunchSummary& summary);

}  // namespace concertina
