// The figures that all working ranks must know at the end of a step: the loss of each microbatch,
// the sum of squares of each tensor's gradient, and what each rank says of its state. Invariants:
// sums are made in fp64 by block, tensor and bucket in canonical order, and losses in microbatch
// order, so all ranks have the same bits at any layout; nothing is allocated in a step.
#pragma once

#include <vector>

#include "core/backend.h"
#include "parallel/comm/communicator.h"
#include "parallel/comm/watchdog.h"
#include "parallel/plan/assignment.h"
#include "parallel/runtime/gradient_exchange.h"
#include "parallel/runtime/state_check.h"

namespace concertina {

/// The advice when training has diverged: a run keeps the keys that led there.
inline constexpr const char* kDivergedAdvice =
    "another run.name with a lower optimizer.lr or a longer lr.warmup (a run cannot change them); "
    "this run's checkpoints are kept";

class StepSums {
 public:
  /// All outlive it. Takes its memory in connect(): `plan` makes engines of any size.
  StepSums(const Job& job, const Assignment& assignment, int rank, const StateCheck& check);

  /// `working`: the ranks that work, by Assignment::working_index().
  void connect(Communicator& working, Backend& backend, Watchdog* watchdog);

  /// In the next step the gradients of these buckets are 0.
  void skip(SkippedBuckets skipped) { skipped_ = skipped; }
  /// The sums of squares of this rank's own parts; waits for its kernels.
  void add_gradients(const GradientExchange& gradients);
  /// Makes all sums known to all working ranks. `losses`: of this rank's last stages, by
  /// microbatch.
  void gather(const std::vector<double>& losses);

  /// What working rank `rank` says of its state: this one's before gather(), all after it.
  std::span<double> words(int rank) {
    const auto index = static_cast<std::size_t>(assignment_.working_index(rank));
    return std::span(sums_).subspan(words_at_[index], check_.words(rank));
  }
  /// The mean loss over `targets` targets, after gather().
  double mean_loss(double targets) const;
  /// The sum of squares of the whole gradient, over all tensors in order, after gather().
  double total_squares();
  /// Of the first loss that is not finite, or of the first such gradient of a backward pass; none
  /// if all are finite. After total_squares().
  StepFault not_finite(std::int64_t step) const;
  /// The sums of squares by bucket, after total_squares(); 0 of a frozen or skipped one.
  const std::vector<double>& bucket_squares() const { return bucket_squares_; }

 private:
  void place_sums();
  void place_squares();
  std::size_t blocks_of(std::size_t bucket, std::size_t owner) const;
  void add_squares(std::size_t bucket);

  const Job& job_;
  const Assignment& assignment_;
  const StateCheck& check_;
  int rank_;
  std::vector<int> me_;  // bucket -> index among its owners; -1: frozen, or no owner
  std::vector<std::vector<TensorRun>> runs_;  // of the own part

  // Squares go from a bucket's owners to the first of them, which adds them up, tensor by tensor;
  // losses and these sums go to all. So a rank has 8 bytes for each block of its own parts, or, of
  // buckets that it is the first owner of, for each of their blocks; and of the whole model 8 bytes
  // per tensor and microbatch.
  std::vector<double> squares_;
  std::vector<std::size_t> own_squares_;               // by bucket: where those of the own part are
  std::vector<std::vector<std::size_t>> all_squares_;  // by bucket, if first owner, and by owner
  std::vector<Send> square_sends_;
  std::vector<Receive> square_receives_;
  std::vector<double> sums_;             // of all working ranks
  std::vector<std::size_t> sums_begin_;  // by working rank, and the end
  std::vector<std::size_t> words_at_;    // by working rank: index in sums_
  std::vector<std::size_t> loss_at_;     // by microbatch: index in sums_
  std::vector<std::size_t> tensors_at_;  // by bucket: index in sums_ of its first tensor's
  std::vector<int> loss_rank_;           // by microbatch: the rank of its last stage
  std::vector<Bytes> messages_;          // of sums_, by working rank
  std::vector<double> bucket_squares_;
  SkippedBuckets skipped_;
  Communicator* working_ = nullptr;
  Watchdog* watchdog_ = nullptr;
  Backend* backend_ = nullptr;
};

}  // namespace concertina
