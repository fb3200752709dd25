// The values that all working ranks need at the end of a step: the loss of each microbatch, the sum
// of squares of each tensor's gradient, and each rank's state check. Invariants: sums are in fp64
// by block, tensor and bucket in canonical order, and losses in microbatch order, so all ranks have
// bit-identical values for any layout; nothing is allocated in a step.
#pragma once

#include <vector>

#include "core/backend.h"
#include "parallel/comm/communicator.h"
#include "parallel/comm/watchdog.h"
#include "parallel/plan/assignment.h"
#include "parallel/runtime/gradient_exchange.h"
#include "parallel/runtime/state_check.h"

namespace concertina {

/// Advice after divergence: a run cannot change the keys that led to it.
inline constexpr const char* kDivergedAdvice =
    "another run.name with a lower optimizer.lr or a longer lr.warmup (a run cannot change them); "
    "this run's checkpoints are kept";

class StepSums {
 public:
  /// References must outlive it. Allocates in connect(), since `plan` creates engines of any size.
  StepSums(const Job& job, const Assignment& assignment, int rank, const StateCheck& check);

  /// `working` spans the working ranks, numbered by Assignment::working_index().
  void connect(Communicator& working, Backend& backend, Watchdog* watchdog);

  /// Counts the gradients of these buckets as 0 in the next step.
  void skip(SkippedBuckets skipped) { skipped_ = skipped; }
  /// Adds the squares of this rank's own parts; waits for its kernels.
  void add_gradients(const GradientExchange& gradients);
  /// Distributes all sums to all working ranks. `losses` are this rank's, by microbatch.
  void gather(const std::vector<double>& losses);

  /// The values of a working rank's state check: this rank's before gather(), all ranks' after it.
  std::span<double> words(int rank) {
    const auto index = static_cast<std::size_t>(assignment_.working_index(rank));
    return std::span(sums_).subspan(words_at_[index], check_.words(rank));
  }
  /// The mean loss over `targets` targets, after gather().
  double mean_loss(double targets) const;
  /// The sum of squares of the whole gradient, over all tensors in order, after gather().
  double total_squares();
  /// The fault for the first non-finite loss or else for the first non-finite gradient in the order
  /// of a backward pass; none if all are finite. After total_squares().
  StepFault not_finite(std::int64_t step) const;
  /// The sums of squares by bucket, after total_squares(); 0 for a frozen or skipped one.
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
  std::vector<int> me_;  // bucket -> index among its owners; -1: frozen, or another rank owns it
  std::vector<std::vector<TensorRun>> runs_;  // runs of this rank's part

  // Squares go from a bucket's owners to the first of them, which adds them up by tensor; losses
  // and these sums go to all ranks. So a rank holds 8 bytes for each block of its own parts and of
  // buckets of which it is the first owner, and 8 bytes per tensor of the model and per microbatch.
  std::vector<double> squares_;
  std::vector<std::size_t> own_squares_;  // by bucket: index of the squares of this rank's part
  std::vector<std::vector<std::size_t>> all_squares_;  // [first-owned bucket][owner]
  std::vector<Send> square_sends_;
  std::vector<Receive> square_receives_;
  std::vector<double> sums_;             // sums of all working ranks
  std::vector<std::size_t> sums_begin_;  // by working rank, with an end entry
  std::vector<std::size_t> words_at_;    // by working rank: index in sums_
  std::vector<std::size_t> loss_at_;     // by microbatch: index in sums_
  std::vector<std::size_t> tensors_at_;  // by bucket: index in sums_ of its first tensor
  std::vector<int> loss_rank_;           // by microbatch: rank of its last stage
  std::vector<Bytes> messages_;          // parts of sums_, by working rank
  std::vector<double> bucket_squares_;
  SkippedBuckets skipped_;
  Communicator* working_ = nullptr;
  Watchdog* watchdog_ = nullptr;
  Backend* backend_ = nullptr;
};

}  // namespace concertina
