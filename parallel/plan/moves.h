// The data that travels when a run goes from one assignment to another: pure, so that it is known
// before. Invariants: each byte that a rank lacks travels once, from the nearest rank that has it,
// and nothing that is already there; rounds are ordered so that no rank holds more than its larger
// state and the budget at once, or one bucket where the budget is smaller.
#pragma once

#include <cstddef>
#include <vector>

#include "parallel/plan/assignment.h"

namespace concertina {

/// Elements [begin, end) of a bucket, from one rank to another or to another block of the same
/// rank.
struct Move {
  std::size_t bucket = 0;
  bool kinds = false;  // the optimizer's tensors of this range; else the weights
  std::size_t begin = 0, end = 0;
  int from = 0, to = 0;
  std::size_t source = bucket;  // of the weights; another where the bucket begins as its copy
  std::size_t count() const { return end - begin; }
  bool operator==(const Move&) const = default;
};

/// The part of `bucket` whose optimizer state `rank` keeps; null where it holds none of the bucket,
/// or the bucket is frozen for good or only one assignment's (Bucket::copy_of).
const Part* own_state(const Assignment& assignment, std::size_t bucket, int rank);

/// Whether a rank's own part of a bucket, if it has one, is the same in both: nothing to move.
bool keeps_own_state(const Assignment& from, const Assignment& to, std::size_t bucket, int rank);

/// Whether `rank` has the weights of `bucket`, which the assignment need not have.
bool holds(const Assignment& assignment, std::size_t bucket, int rank);

/// Bytes that a rank's state takes, or part of it.
struct StateBytes {
  std::size_t weights = 0, optimizer = 0;
  std::size_t total() const { return weights + optimizer; }
};
StateBytes state_bytes(const Assignment& assignment, int rank, std::size_t kinds);
/// Bytes of a block of `count` tensors of so many fp32 elements.
std::size_t block_bytes(std::size_t elements, std::size_t count);

/// Buckets whose blocks are made, filled and given back together.
struct MoveRound {
  std::vector<std::size_t> buckets;
  std::vector<Move> moves;  // by bucket, weights first, then by `to` and `begin`
};

struct MovePlan {
  std::vector<MoveRound> rounds;
  std::vector<std::size_t> peak_bytes;   // by rank: of its state, during the move
  std::vector<std::size_t> extra_bytes;  // by rank: of these, above the larger of both states

  /// Bytes that travel between ranks.
  std::size_t bytes(std::size_t kinds) const;
};

/// The moves from `from` to `to`, two assignments of one job to one world; `kinds` tensors of the
/// optimizer. `hosts`: by rank; empty: all share one. `budget`: bytes that a rank may take besides
/// the larger of its states; 0: a quarter of that.
MovePlan plan_moves(const Assignment& from, const Assignment& to, std::size_t kinds,
                    const std::vector<int>& hosts = {}, std::size_t budget = 0);

}  // namespace concertina
