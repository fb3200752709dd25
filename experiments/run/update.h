// The end of a step: global norm, clipping, optimizer on the own parts, weights back to all
// holders. Invariants: the norm is summed in fp64 by block, tensor and bucket in canonical order,
// and losses in microbatch order, so all ranks have the same bits at any layout; a norm or loss
// that is not finite stops every rank before a weight has changed.
#pragma once

#include <array>
#include <memory>
#include <vector>

#include "core/arena.h"
#include "core/backend.h"
#include "experiments/run/run_plan.h"
#include "models/lr_schedule.h"
#include "models/optimizer.h"
#include "parallel/comm/communicator.h"
#include "parallel/comm/watchdog.h"
#include "parallel/runtime/gradient_exchange.h"
#include "parallel/runtime/groups.h"
#include "parallel/runtime/trace_recorder.h"

namespace concertina {

/// What to try when training has diverged: a run keeps the keys that led there.
inline constexpr const char* kDivergedAdvice =
    "another run.name with a lower optimizer.lr or a longer lr.warmup (a run cannot change them); "
    "this run's checkpoints are kept";

struct StepSummary {
  double loss = 0;       // mean over the valid targets of the global batch, nats
  double grad_norm = 0;  // before clipping
  double lr = 0;
};

/// Most state tensors that an optimizer may keep.
inline constexpr std::size_t kMaxStates = 4;

/// Seconds of this rank's own work in the last step.
struct UpdateTimes {
  double norm = 0, update = 0;
};

class Update {
 public:
  Update(const RunPlan& run, const RunConfig& config, int rank);

  std::size_t state_bytes() const;
  /// `weights[b]`: all of bucket b, or empty.
  void attach(Arena& arena, std::vector<View> weights);
  void connect(Communicator& world, const Groups& groups, Backend& backend,
               Watchdog* watchdog = nullptr);
  /// The learning rate reaches its end at step `steps`; see lr_steps().
  void set_lr_steps(std::int64_t steps);

  /// Step `step` (from 1). `losses`: of this rank's last stages, by microbatch; `targets`: valid
  /// targets of the global batch. Throws a failure that names step and rank if anything is NaN.
  StepSummary apply(std::int64_t step, const GradientExchange& gradients,
                    const std::vector<double>& losses, double targets, TraceRecorder& recorder);

  /// Once the backend's clock has settled.
  UpdateTimes times() const;
  /// Elements of this rank's parts that train.
  std::size_t elements() const;

  const std::vector<std::string_view>& state_names() const { return names_; }
  /// State `s` of this rank's part of `bucket`, which is not frozen.
  View state(int bucket, std::size_t s) const {
    return states_[static_cast<std::size_t>(bucket)][s];
  }

 private:
  const Part& own_part(std::size_t bucket) const;
  void place_sums();
  void place_squares();
  std::size_t blocks_of(std::size_t bucket, std::size_t owner) const;
  void fill_squares(const GradientExchange& gradients);
  void add_squares(std::size_t bucket);
  void gather_sums(const std::vector<double>& losses, TraceRecorder& recorder);
  StepSummary summarize(std::int64_t step, double targets);
  double total_squares(std::int64_t step);
  void update_part(std::size_t bucket, const UpdateStep& step, View gradient);
  void gather_weights(std::size_t bucket);

  /// Of the last step, on the backend's clock.
  struct Marks {
    double start = 0, summed = 0, met = 0, updated = 0;
  };

  Marks marks_;
  const RunPlan& run_;
  double clip_;
  int rank_;
  std::unique_ptr<Optimizer> optimizer_;
  std::string lr_name_;
  LrConfig lr_config_;
  LrSchedule lr_;
  std::vector<std::string_view> names_;
  std::vector<int> me_;  // bucket -> index among its owners; -1: frozen, or no owner
  std::vector<std::vector<TensorRun>> runs_;  // of the own part
  std::vector<std::array<View, kMaxStates>> states_;
  std::vector<View> weights_;
  std::vector<std::vector<Bytes>> weight_parts_;  // of each holder
  std::vector<Communicator*> groups_;
  std::vector<Work> works_;

  // Squares go from a bucket's owners to the first of them, which adds them up, tensor by tensor;
  // losses and these sums go to all. So a rank has 8 bytes for each block of its own parts, or, of
  // buckets that it is the first owner of, for each of their blocks; and of the whole model 8 bytes
  // per tensor and microbatch. Made when ranks are connected: `plan` makes engines of any size.
  std::vector<double> squares_;
  std::vector<std::size_t> own_squares_;               // by bucket: where those of the own part are
  std::vector<std::vector<std::size_t>> all_squares_;  // by bucket, if first owner, and by owner
  std::vector<Send> square_sends_;
  std::vector<Receive> square_receives_;
  std::vector<double> sums_;             // of all ranks
  std::vector<std::size_t> sums_begin_;  // by rank, and the end
  std::vector<std::size_t> loss_at_;     // by microbatch: index in sums_
  std::vector<std::size_t> tensors_at_;  // by bucket: index in sums_ of its first tensor's
  std::vector<int> loss_rank_;           // by microbatch: the rank of its last stage
  std::vector<Bytes> messages_;          // of sums_, by rank
  Communicator* world_ = nullptr;
  Watchdog* watchdog_ = nullptr;
  Backend* backend_ = nullptr;
};

}  // namespace concertina
