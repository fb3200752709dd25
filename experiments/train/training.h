// The loop of `train`: steps, evaluations, checkpoints, the end. Invariant: all ranks make the same
// decisions; output for users never changes what is trained.
#pragma once

#include <functional>
#include <optional>

#include "experiments/adopt/freezing.h"
#include "experiments/adopt/repartition.h"
#include "experiments/cache/auto_cache.h"
#include "experiments/evaluate/evaluate.h"
#include "experiments/record/launch_metrics.h"
#include "experiments/record/run_trace.h"
#include "experiments/record/tracing.h"
#include "experiments/train/saves.h"
#include "experiments/train/step_guard.h"
#include "experiments/train/stragglers.h"
#include "experiments/train/train_launch.h"

namespace concertina {

/// A number that each rank contributes after a step, and what to do with all of them in rank order.
struct StepHook {
  std::function<double()> news;
  std::function<void(const std::vector<double>& all)> heard;
};

/// The last step, or the combined steps, as known on all ranks.
struct DoneStep {
  std::int64_t before = 0;  // steps of the run before it
  int batches = 1;          // combined steps
  StepResult result{};
  double own_seconds = 0;                // on this rank
  double seconds = 0;                    // until all ranks finished it
  double bubble = 0;                     // idle share, mean over ranks
  int signal = 0;                        // received by any rank
  std::optional<Straggler> straggler{};  // on rank 0
};

class Training {
 public:
  /// `launch` is open and outlives this object.
  explicit Training(TrainLaunch& launch);

  /// Trains the remaining steps and returns the exit code; nullopt if the launch must go back and
  /// another Training continues. Collective.
  std::optional<int> run();
  /// The number of completed steps of the run.
  std::int64_t done() const { return done_; }

 private:
  std::vector<StepHook> hooks();
  bool train_step(Tracing& tracing);
  void exchange_news(double start);
  std::optional<StepResult> trained(std::int64_t step);
  void record();
  Validation validate_model(std::int64_t step, std::int64_t batches, bool final,
                            const std::function<bool()>& stop = {});
  void decide(Tracing& tracing);
  void report_straggler(const Straggler& found);
  void write_events(std::int64_t step, const std::vector<RunEvent>& events);
  nlohmann::json progress() const;
  CacheForecast cache_forecast() const;
  void periodic_validation(std::int64_t step, bool due);
  Validation final_validation(const std::function<bool()>& stop);
  void evaluate_step(std::int64_t before);
  double evaluations_left() const;
  bool stop_requested();
  int preempted(int signal);
  std::optional<int> train_all();
  [[noreturn]] void end_unread(const UnreadData& error);
  int finish(const std::optional<RunTrace>& trace);

  TrainLaunch& launch_;
  Trainer& trainer_;
  TrainingSource source_;
  StepGuard guard_;
  Freezing freezing_;
  Repartition repartition_;
  const std::vector<ChangePolicy*> policies_;  // called in this order
  std::unique_ptr<AutoCache> cache_;           // null: no budget, or nothing left to train
  Stragglers stragglers_;                      // on rank 0
  LaunchMetrics metrics_;
  LaunchSummary summary_;
  struct {
    std::int64_t step = -1, batches = 0;
    Validation result{};
  } evaluated_;                     // the last evaluation
  std::optional<Measure> measure_;  // on rank 0, of evaluations
  bool reported_eval_share_ = false;
  Saves saves_;
  std::int64_t done_;  // steps
  DoneStep step_;
  const std::vector<StepHook> hooks_;
  std::int64_t evaluating_ = -1;  // argument of the running evaluate_step()
  int stopped_by_ = 0;            // signal received by any rank after the last step of the run
};

}  // namespace concertina
