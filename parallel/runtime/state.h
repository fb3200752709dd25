// Weights and optimizer state of one rank, which survive a change of the assignment.
// Invariants: a rank holds all weights of its buckets, and the optimizer state of its own part of
// each bucket that trains (ZeRO stage 1). Each bucket has separate blocks for the two, so that a
// change of the assignment can allocate and release memory bucket by bucket.
#pragma once

#include <functional>
#include <span>
#include <string>
#include <vector>

#include "core/arena.h"
#include "core/model/optimizer.h"
#include "parallel/plan/moves.h"

namespace concertina {

/// Name of the kind that is a snapshot of the weights (Job::keeps_reference).
inline constexpr const char* kReference = "reference";

/// Names of everything that a run keeps in addition to the weights: the optimizer's tensors, then
/// the snapshot, if any.
std::vector<std::string> state_kinds(const Job& job, const Optimizer& optimizer);
inline constexpr std::size_t kMostKinds = kMostStates + 1;

/// A range of one tensor in a rank's own part of a bucket.
struct OwnedRun {
  std::size_t bucket = 0;
  const BucketTensor* tensor = nullptr;
  std::size_t begin = 0;  // within the tensor, in elements
  View weight;
  std::span<const View> kinds;  // like State::kinds(); empty for a frozen bucket
};

class State {
 public:
  /// Initializes everything to zero. `kinds` is state_kinds(). `memory` must outlive the state, as
  /// must `assignment` until use() replaces it.
  State(const Assignment& assignment, int rank, std::vector<std::string> kinds, Memory& memory);

  /// All weights of the rank, by bucket; empty if this rank does not hold the bucket.
  const std::vector<View>& weights() const { return weights_; }
  /// This rank's own part of `bucket` of kind `kind`; empty if it has none.
  View part(std::size_t bucket, std::size_t kind) const;
  const std::vector<std::string>& kinds() const { return kinds_; }
  /// Calls `see` for each tensor range in the rank's own parts, by bucket, including frozen ones.
  /// Over all ranks, each element of the model's state is visited once.
  void each_owned(const std::function<void(const OwnedRun&)>& see) const;

  /// By bucket: how many of the run's updates its optimizer state missed while frozen.
  std::vector<std::int64_t>& missed() { return missed_; }
  const std::vector<std::int64_t>& missed() const { return missed_; }

  const Assignment& assignment() const { return *assignment_; }
  int rank() const { return rank_; }
  Memory& memory() const { return *memory_; }
  std::size_t bytes() const { return bytes_; }
  /// Peak size in bytes, since construction or restart_peak().
  std::size_t peak() const { return peak_; }
  void restart_peak() { peak_ = bytes_; }

  // Functions for a change of the assignment (parallel/runtime/redistribute.h).
  /// Allocates a zeroed block of `count` tensors of `elements` elements; see give_back().
  Arena make_block(std::size_t elements, std::size_t count);
  void give_back(Arena block) { bytes_ -= block.capacity(); }
  /// Replaces the block of a bucket's weights or kinds, of `elements` elements each, and returns
  /// the old one.
  Arena swap_weights(std::size_t bucket, Arena block, std::size_t elements);
  Arena swap_kinds(std::size_t bucket, Arena block, std::size_t elements);
  /// Sets the assignment of the state; it must outlive the state.
  void use(const Assignment& assignment);
  /// Sets the number of buckets; existing ones keep their blocks.
  void resize(std::size_t buckets);

 private:
  const Assignment* assignment_;
  int rank_;
  std::vector<std::string> kinds_;
  Memory* memory_;
  std::vector<Arena> weight_blocks_, kind_blocks_;  // by bucket
  std::vector<View> weights_;
  std::vector<std::size_t> part_elements_;  // by bucket: per kind
  std::vector<std::int64_t> missed_;
  std::size_t bytes_ = 0, peak_ = 0;
};

}  // namespace concertina
