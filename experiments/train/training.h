// The loop of `train`: steps, evaluations, checkpoints, the end.
// Invariant: all ranks take the same decisions; what is shown or written for people never changes
// what is trained.
#pragma once

#include <functional>
#include <optional>
#include <string>

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

/// The figures of a step that has just ended, which all ranks must know.
struct StepStatus {
  double bubble = 0;              // idle share, mean over ranks
  double peak_bytes = 0;          // largest of any rank
  int signal = 0;                 // that any rank got
  double snapshot_share = 0;      // of the step's time, largest of any rank
  bool snapshot_busy = false;     // the last one is not whole yet, on some rank
  double check_share = 0;         // of the step's time, largest of any rank
  std::vector<double> saves{};    // Saves::news() of the working ranks, as paces
  std::vector<StepPace> paces{};  // by index of the working ranks
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
  /// The steps (before, done()], which took `seconds` each.
  struct StepView {
    std::int64_t before = 0;
    double seconds = 0;
    StepStatus status;
  };
  std::optional<StepView> train_step(Tracing& tracing);
  std::optional<StepResult> trained(std::int64_t step);
  void record(int batches, const StepResult& summary, const StepStatus& status, double seconds);
  Validation validate_model(std::int64_t step, std::int64_t batches, bool final,
                            const std::function<bool()>& stop = {});
  void decide(const RunView& view, Tracing& tracing);
  void look_for_stragglers(const StepStatus& status, double seconds);
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
  std::int64_t done_;             // steps
  std::int64_t evaluating_ = -1;  // evaluate_step() of this is under way
  int stopped_by_ = 0;            // signal that any rank got after the last step
};

}  // namespace concertina
