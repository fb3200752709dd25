// The end of a step: global norm, clipping, optimizer on the own parts, weights back to all
// holders. Invariant: where a norm or a loss is not finite, or the state of a rank not what it was,
// no rank changes a weight.
#pragma once

#include <memory>
#include <optional>
#include <vector>

#include "core/backend.h"
#include "core/model/optimizer.h"
#include "parallel/comm/communicator.h"
#include "parallel/comm/watchdog.h"
#include "parallel/runtime/gradient_exchange.h"
#include "parallel/runtime/state.h"
#include "parallel/runtime/step_sums.h"
#include "parallel/runtime/trace_recorder.h"
#include "parallel/runtime/weight_gather.h"

namespace concertina {

/// The figures of a step, the same bits on every rank and at every layout.
struct StepResult {
  double loss = 0;       // mean over the valid targets of the global batch, nats
  double grad_norm = 0;  // before clipping
  double lr = 0;
  StepFault::Kind fault = StepFault::Kind::none;  // else the update was left out
};

/// The step that an update ends.
struct UpdateOf {
  std::int64_t step = 0;    // of the run, for errors; from 1
  std::int64_t number = 0;  // of the updates so far, from 1: fewer than steps where some do several
  double lr = 0;
  double targets = 0;   // valid ones of the step
  bool unread = false;  // this rank could not read its part of the batch
};

/// Seconds of this rank's own work in the last step.
struct UpdateTimes {
  double norm = 0, update = 0;
};

class Update {
 public:
  /// All outlive it. `clip`: of the global norm, as clip_scale() takes it. Makes the optimizer's
  /// operators on `backend`.
  Update(const Job& job, const Assignment& assignment, int rank, const Optimizer& optimizer,
         double clip, Backend& backend);

  /// Scratch of updates, of which nothing stays.
  std::size_t scratch_bytes() const { return tools_ == nullptr ? 0 : tools_->scratch_bytes(); }
  void set_scratch(void* scratch) {
    if (tools_ != nullptr) tools_->attach(scratch);
  }
  /// `state` of this assignment; `working`: the ranks that work. All outlive it.
  void connect(State& state, Communicator& working, const Groups& groups, Watchdog* watchdog);

  /// In the next step weights and state of these buckets stay, and they have no part in the norm.
  void skip(SkippedBuckets skipped) {
    skipped_ = skipped;
    sums_.skip(skipped);
    if (weights_) weights_->skip(skipped);
  }
  /// `losses`: of this rank's last stages, by microbatch. Changes nothing if there is a fault().
  StepResult apply(const UpdateOf& update, const GradientExchange& gradients,
                   const std::vector<double>& losses, TraceRecorder& recorder);

  /// What was wrong with the last step.
  const StepFault& fault() const { return fault_; }
  StateCheck& check() { return check_; }
  const StateCheck& check() const { return check_; }
  /// The sum of squares of the last step's gradient, by bucket; 0 of a frozen or skipped one.
  const std::vector<double>& bucket_squares() const { return sums_.bucket_squares(); }
  /// Once the backend's clock has settled.
  UpdateTimes times() const;
  /// Elements of this rank's parts that train.
  std::size_t elements() const;

 private:
  void update_bucket(std::size_t bucket, const UpdateStep& step, View gradient);

  /// When the parts of the last step ended, on the backend's clock.
  struct Marks {
    double start = 0, summed = 0, met = 0, updated = 0;
  };

  Marks marks_;
  const Assignment& assignment_;
  const int rank_;
  const Optimizer& optimizer_;
  const double clip_;
  const std::size_t kinds_;  // of the optimizer: the first of the state
  StateCheck check_;
  StepSums sums_;
  StepFault fault_;
  SkippedBuckets skipped_;
  std::vector<const Part*> parts_;  // by bucket: the own one; null where nothing trains here
  std::vector<std::vector<TensorRun>> runs_;
  std::unique_ptr<UpdateTools> tools_;
  State* state_ = nullptr;
  std::optional<WeightGather> weights_;  // none on a spare rank
  Watchdog* watchdog_ = nullptr;
  Backend& backend_;
};

}  // namespace concertina
