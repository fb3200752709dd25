// Weights and optimizer state of one rank: what moves when the machinery around it is rebuilt.
// Invariants: a rank has all weights of the buckets that it holds, and the optimizer state of its
// own part of those that train (ZeRO stage 1); each lies in a block of its own, so that a change of
// the assignment can take and give back bucket after bucket.
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

/// The names of all that a run keeps beside the weights: the optimizer's tensors, then the
/// snapshot if it has one.
std::vector<std::string> state_kinds(const Job& job, const Optimizer& optimizer);
inline constexpr std::size_t kMostKinds = kMostStates + 1;

/// A run of one tensor in a rank's own part of a bucket.
struct OwnedRun {
  std::size_t bucket = 0;
  const BucketTensor* tensor = nullptr;
  std::size_t begin = 0;  // elements, in the tensor
  View weight;
  std::span<const View> kinds;  // State::kinds(); none of a frozen bucket
};

class State {
 public:
  /// All of it is zero. `kinds`: state_kinds(). `memory` outlives it; so does `assignment`, which
  /// use() may replace.
  State(const Assignment& assignment, int rank, std::vector<std::string> kinds, Memory& memory);

  /// The weights by bucket: all of its elements, or empty where this rank does not hold it.
  const std::vector<View>& weights() const { return weights_; }
  /// This rank's own part of `bucket` of kind `kind`; empty where it has none.
  View part(std::size_t bucket, std::size_t kind) const;
  const std::vector<std::string>& kinds() const { return kinds_; }
  /// Every run of a tensor in the rank's own parts, bucket by bucket, those of frozen buckets as
  /// well: each element of the model's state is seen once, by one rank.
  void each_owned(const std::function<void(const OwnedRun&)>& see) const;

  /// Of the run's updates so far, by bucket, those that its optimizer state does not know of, since
  /// it was frozen.
  std::vector<std::int64_t>& missed() { return missed_; }
  const std::vector<std::int64_t>& missed() const { return missed_; }

  const Assignment& assignment() const { return *assignment_; }
  int rank() const { return rank_; }
  Memory& memory() const { return *memory_; }
  std::size_t bytes() const { return bytes_; }
  /// The most bytes at once so far, or since restart_peak().
  std::size_t peak() const { return peak_; }
  void restart_peak() { peak_ = bytes_; }

  // For a change of the assignment (parallel/runtime/redistribute.h).
  /// Makes a zeroed block of `count` tensors of so many elements; give_back() ends it.
  Arena make_block(std::size_t elements, std::size_t count);
  void give_back(Arena block) { bytes_ -= block.capacity(); }
  /// Puts a block in the place of a bucket's weights or kinds, each of so many elements, and
  /// returns what was there.
  Arena swap_weights(std::size_t bucket, Arena block, std::size_t elements);
  Arena swap_kinds(std::size_t bucket, Arena block, std::size_t elements);
  /// From now on the state is that of `assignment`, which outlives it.
  void use(const Assignment& assignment);
  /// Makes room for the blocks of so many buckets; those that stay keep theirs.
  void resize(std::size_t buckets);

 private:
  const Assignment* assignment_;
  int rank_;
  std::vector<std::string> kinds_;
  Memory* memory_;
  std::vector<Arena> weight_blocks_, kind_blocks_;  // by bucket
  std::vector<View> weights_;
  std::vector<std::size_t> part_elements_;  // by bucket: of a kind
  std::vector<std::int64_t> missed_;
  std::size_t bytes_ = 0, peak_ = 0;
};

}  // namespace concertina
