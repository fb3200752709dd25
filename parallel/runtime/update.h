// The end of a step: global norm, clipping, optimizer on each rank's parts, and return of the
// weights to all holders. Invariant: if a norm or loss is not finite, or the state of a rank has
// changed, no rank changes a weight.
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

/// The metrics of a step, bit-identical on every rank and for every layout.
struct StepResult {
  double loss = 0;       // mean over the valid targets of the global batch, in nats
  double grad_norm = 0;  // before clipping
  double lr = 0;
  StepFault::Kind fault = StepFault::Kind::none;  // unless none, the update was skipped
};

/// The step that an update ends.
struct UpdateOf {
  std::int64_t step = 0;    // step of the run, from 1; for errors
  std::int64_t number = 0;  // number of the update, from 1; below `step` if updates comprise
                            // several steps
  double lr = 0;
  double targets = 0;   // number of valid targets in the step
  bool unread = false;  // whether this rank could not read its part of the batch
};

/// Seconds of this rank's work in the last step, without waits.
struct UpdateTimes {
  double norm = 0, update = 0;
};

class Update {
 public:
  /// All references must outlive it. `clip` is the limit on the global norm, as in clip_scale().
  /// Creates the optimizer's operators on `backend`.
  Update(const Job& job, const Assignment& assignment, int rank, const Optimizer& optimizer,
         double clip, Backend& backend);

  /// Size of the temporary memory of updates, in bytes.
  std::size_t scratch_bytes() const { return tools_ == nullptr ? 0 : tools_->scratch_bytes(); }
  void set_scratch(void* scratch) {
    if (tools_ != nullptr) tools_->attach(scratch);
  }
  /// `state` has this assignment; `working` spans the working ranks. References must outlive it.
  void connect(State& state, Communicator& working, const Groups& groups, Watchdog* watchdog);

  /// Excludes these buckets from the next update and its norm.
  void skip(SkippedBuckets skipped) {
    skipped_ = skipped;
    sums_.skip(skipped);
    if (weights_) weights_->skip(skipped);
  }
  /// `losses` come from this rank's last stages, by microbatch. On a fault(), nothing changes.
  StepResult apply(const UpdateOf& update, const GradientExchange& gradients,
                   const std::vector<double>& losses, TraceRecorder& recorder);

  /// The fault in the last step.
  const StepFault& fault() const { return fault_; }
  StateCheck& check() { return check_; }
  const StateCheck& check() const { return check_; }
  /// Sums of squares of the last step's gradient, by bucket; 0 for a frozen or skipped one.
  const std::vector<double>& bucket_squares() const { return sums_.bucket_squares(); }
  /// Requires that the backend's clock has settled.
  UpdateTimes times() const;
  /// Number of elements that train in this rank's parts.
  std::size_t elements() const;

 private:
  void update_bucket(std::size_t bucket, const UpdateStep& step, View gradient);

  /// When each phase of the last update ended, on the backend's clock.
  struct Marks {
    double start = 0, summed = 0, met = 0, updated = 0;
  };

  Marks marks_;
  const Assignment& assignment_;
  const int rank_;
  const Optimizer& optimizer_;
  const double clip_;
  const std::size_t kinds_;  // kinds of optimizer state, which come first in the state
  StateCheck check_;
  StepSums sums_;
  StepFault fault_;
  SkippedBuckets skipped_;
  std::vector<const Part*> parts_;  // by bucket: this rank's part, or null if nothing trains here
  std::vector<std::vector<TensorRun>> runs_;
  std::unique_ptr<UpdateTools> tools_;
  State* state_ = nullptr;
  std::optional<WeightGather> weights_;  // none on a spare rank
  Watchdog* watchdog_ = nullptr;
  Backend& backend_;
};

}  // namespace concertina
