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
#include "parallel/runtime/gradient_exchange.h"
#include "parallel/runtime/groups.h"
#include "parallel/runtime/trace_recorder.h"

namespace concertina {

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
  void connect(Communicator& world, const Groups& groups, Backend& backend);

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
  void fill_sums(const GradientExchange& gradients, const std::vector<double>& losses);
  void gather_sums(TraceRecorder& recorder);
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
  LrSchedule lr_;
  std::vector<std::string_view> names_;
  std::vector<int> me_;  // bucket -> index among its owners; -1: frozen, or no owner
  std::vector<std::vector<TensorRun>> runs_;  // of the own part
  std::vector<std::array<View, kMaxStates>> states_;
  std::vector<View> weights_;
  std::vector<std::vector<Bytes>> weight_parts_;  // of each holder
  std::vector<Communicator*> groups_;
  std::vector<Work> works_;

  // One message of each rank: the losses of its last stages by microbatch, then the squares of its
  // blocks, bucket by bucket.
  std::vector<double> sums_;             // of all ranks
  std::vector<std::size_t> sums_begin_;  // by rank, and the end
  std::vector<int> loss_rank_;           // by microbatch: the rank of its last stage
  std::vector<std::size_t> losses_;      // by rank: how many it has
  std::vector<Bytes> messages_;
  std::vector<std::vector<int>> block_tensor_;  // by bucket and block
  std::vector<std::size_t> cursors_;            // by rank: scratch of summarize and total_squares
  Communicator* world_ = nullptr;
  Backend* backend_ = nullptr;
};

}  // namespace concertina
