// Which units skip their weight gradients in each step; units take turns.
// Invariants: pure; what a step skips depends only on the seed, the step and the groups, so it is
// the same on every rank and for every layout; in each step, the specified number of units in each
// group skip, and all units of a group of n skip equally often in the steps n i + 1 .. n i + n.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/model_spec.h"
#include "core/model/stage.h"

namespace concertina {

struct SkipGroup {
  std::vector<int> units;  // units of the model, ascending
  int skipped = 0;         // number of units that skip per step

  bool operator==(const SkipGroup&) const = default;
};

/// The weight gradients that a run skips, decided once.
struct SkipPlan {
  std::vector<SkipGroup> groups;  // by stage of the assignment for which it was decided
  double step_ratio = 1;          // expected duration of a step relative to one without skips
  double best_ratio = 1;          // the same with fractional numbers of units

  bool operator==(const SkipPlan&) const = default;
};

/// Returns the single bucket of the unit among `buckets` of make_buckets(model), or -1 if it has
/// none or shares a tensor, in which case its W runs in every step.
int skipped_bucket(const ModelSpec& model, const std::vector<Bucket>& buckets, int unit);

class SkipTurns {
 public:
  SkipTurns() = default;  // no unit skips
  /// Each unit of `groups` must have a skipped_bucket().
  SkipTurns(const ModelSpec& model, std::vector<SkipGroup> groups, std::uint64_t seed);

  /// Returns the buckets that step `step` (from 1) skips, valid until the next call. Steps of the
  /// run that are done together count as one, so that every unit gets its turn. Allocates nothing.
  SkippedBuckets of_step(std::int64_t step);

 private:
  std::uint64_t seed_ = 0;
  std::vector<SkipGroup> groups_;
  std::vector<int> buckets_;  // by unit
  std::vector<int> order_;    // units of one group
  std::vector<char> flags_;   // by bucket
};

}  // namespace concertina
