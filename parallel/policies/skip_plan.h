// Units that leave out their weight gradients by turns: which of them in which step.
// Invariants: pure; what a step skips follows from seed, step and groups alone, so it is the same
// on every rank and at every layout; of a group as many units as it says skip in each step, and
// each unit as often as the others in the steps n i + 1 .. n i + n of its n units.
#pragma once

#include <cstdint>
#include <vector>

#include "core/model/model_spec.h"
#include "core/model/stage.h"

namespace concertina {

struct SkipGroup {
  std::vector<int> units;  // of the model, ascending
  int skipped = 0;         // of them, in each step

  bool operator==(const SkipGroup&) const = default;
};

/// The weight gradients that a run leaves out, decided once.
struct SkipPlan {
  std::vector<SkipGroup> groups;  // by stage of the assignment that it was decided for
  double step_ratio = 1;          // expected time of a step over that without
  double best_ratio = 1;          // the same with shares that are no whole number of units

  bool operator==(const SkipPlan&) const = default;
};

/// The one bucket of the unit among `buckets`, of make_buckets(model); -1: it has none, or it
/// shares a tensor: then its W runs in each step.
int skipped_bucket(const ModelSpec& model, const std::vector<Bucket>& buckets, int unit);

class SkipTurns {
 public:
  SkipTurns() = default;  // no unit skips
  /// Each unit of `groups` has a skipped_bucket().
  SkipTurns(const ModelSpec& model, std::vector<SkipGroup> groups, std::uint64_t seed);

  /// The buckets that step `step` (from 1) skips, until the next call. Where steps of the run are
  /// done together, these are counted as one: else not every unit would have its turn. Allocates
  /// nothing.
  SkippedBuckets of_step(std::int64_t step);

 private:
  std::uint64_t seed_ = 0;
  std::vector<SkipGroup> groups_;
  std::vector<int> buckets_;  // by unit
  std::vector<int> order_;    // of one group
  std::vector<char> flags_;   // by bucket
};

}  // namespace concertina
