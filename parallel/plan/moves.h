// The data that moves when a run changes its assignment. The computation is pure, so the moves are
// known in advance. Invariants: each byte that a rank lacks travels once, from the nearest rank
// that holds it; data that is already in place does not move; rounds are ordered so that no rank
// exceeds its larger state by more than the budget, or by one bucket if the budget is smaller.
#pragma once

#include <cstddef>
#include <vector>

#include "parallel/plan/assignment.h"

namespace concertina {

/// Moves elements [begin, end) of a bucket to another rank or another block of the same rank.
struct Move {
  std::size_t bucket = 0;
  bool kinds = false;  // whether it moves the optimizer's tensors for this range rather than the
                       // weights
  std::size_t begin = 0, end = 0;
  int from = 0, to = 0;
  std::size_t source = bucket;  // bucket that holds the weights: another one if `bucket`
                                // starts as a copy of it
  std::size_t count() const { return end - begin; }
  /// Size in bytes, for an optimizer with `tensors` tensors.
  std::size_t bytes(std::size_t tensors) const {
    return count() * sizeof(float) * (kinds ? tensors : 1);
  }
  bool operator==(const Move&) const = default;
};

/// Returns the part of `bucket` whose optimizer state `rank` keeps. Null if the rank does not hold
/// the bucket, or if it is always frozen or exists in only one assignment (Bucket::copy_of).
const Part* own_state(const Assignment& assignment, std::size_t bucket, int rank);

/// Whether the rank's part of the bucket, if any, is the same before and after and stays put.
bool keeps_own_state(const Assignment& from, const Assignment& to, std::size_t bucket, int rank);

/// Whether `rank` holds the weights of `bucket`, which may not exist in the assignment.
bool holds(const Assignment& assignment, std::size_t bucket, int rank);

/// Size of a rank's state, or of a part of it.
struct StateBytes {
  std::size_t weights = 0, optimizer = 0;
  std::size_t total() const { return weights + optimizer; }
};
StateBytes state_bytes(const Assignment& assignment, int rank, std::size_t kinds);
/// Size of a block of `count` tensors of `elements` fp32 elements each.
std::size_t block_bytes(std::size_t elements, std::size_t count);

/// Buckets whose blocks are allocated, filled and released together.
struct MoveRound {
  std::vector<std::size_t> buckets;
  std::vector<Move> moves;  // by bucket, weights first, then by `to` and `begin`
};

struct MovePlan {
  std::vector<MoveRound> rounds;
  std::vector<std::size_t> peak_bytes;   // by rank: peak size of its state during the move
  std::vector<std::size_t> extra_bytes;  // by rank: excess of the peak over the larger of the two
                                         // states

  /// Bytes sent between ranks.
  std::size_t bytes(std::size_t kinds) const;
};

/// Returns the moves between two assignments of one job to one world, for an optimizer with `kinds`
/// tensors. `hosts` is by rank (empty: a single host). `budget` is the memory that a rank may use
/// in addition to its larger state, in bytes (0: a quarter of that state).
MovePlan plan_moves(const Assignment& from, const Assignment& to, std::size_t kinds,
                    const std::vector<int>& hosts = {}, std::size_t budget = 0);

}  // namespace concertina
