// The loop of `train`: steps, evaluations, checkpoints, the end.
// Invariant: all ranks take the same decisions; what is shown or written for people never changes
// what is trained.
#pragma once

#include <functional>
#include <optional>

#include "experiments/adopt/freezing.h"
#include "experiments/adopt/repartition.h"
#include "experiments/cache/auto_cache.h"
#include "experiments/evaluate/evaluate.h"
#include "experiments/record/launch_figures.h"
#include "experiments/record/run_trace.h"
#include "experiments/record/tracing.h"
#include "experiments/train/saves.h"
#include "experiments/train/step_guard.h"
#include "experiments/train/stragglers.h"
#include "experiments/train/train_launch.h"

namespace concertina {

/// A number that a rank has for the others after each step, and what follows from those of all
/// working ranks, in their order.
struct StepHook {
  std::function<double()> news;
  std::function<void(const std::vector<double>& all)> heard;
};

/// The last step, or the steps that were done at once, as all ranks know it.
struct DoneStep {
  std::int64_t before = 0;  // steps of the run that were done before it
  int batches = 1;          // steps that were done at once
  StepResult result{};
  double own_seconds = 0;                // of this rank
  double seconds = 0;                    // until all ranks had done it
  double bubble = 0;                     // idle share, mean over ranks
  int signal = 0;                        // that any rank got
  std::optional<Straggler> straggler{};  // on rank 0
};

class Training {
 public:
  /// `launch` is open and outlives this.
  explicit Training(TrainLaunch& launch);

  /// Trains what is left, and returns the exit code; nothing: the launch is to go back, and another
  /// Training goes on. Collective.
  std::optional<int> run();
  /// Steps of the run that are done.
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
  void tell_of_straggler(const Straggler& found);
  void write_events(std::int64_t step, const std::vector<RunEvent>& events);
  nlohmann::json progress() const;
  CacheForecast cache_forecast() const;
  void periodic_validation(std::int64_t step, bool due);
  Validation final_validation(const std::function<bool()>& stop);
  void evaluate_step(std::int64_t before);
  double evaluations_left() const;
  bool told_to_stop();
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
  const std::vector<ChangePolicy*> policies_;  // asked in this order
  std::unique_ptr<AutoCache> cache_;           // null: no budget, or nothing left to train
  Stragglers stragglers_;                      // on rank 0
  LaunchFigures figures_;
  LaunchSummary summary_;
  struct {
    std::int64_t step = -1, batches = 0;
    Validation result{};
  } evaluated_;                     // last
  std::optional<Measure> measure_;  // on rank 0, of evaluations
  bool told_eval_share_ = false;
  Saves saves_;
  std::int64_t done_;  // steps
  DoneStep step_;
  const std::vector<StepHook> hooks_;
  std::int64_t evaluating_ = -1;  // evaluate_step() of this is under way
  int stopped_by_ = 0;            // signal that any rank got after the last step of the run
};

}  // namespace concertina
