// Who does what until the next change: the layout and the plan that the ranks follow, and what
// follows from both.
// Invariant: a pure value, the same on every rank; all of it follows from (Job, Layout, Plan,
// ExchangeChoice, world), so an assignment that is printed as these can be made again.
#pragma once

#include <algorithm>
#include <vector>

#include "parallel/plan/exchange_scheme.h"
#include "parallel/plan/job.h"
#include "parallel/plan/ownership.h"
#include "parallel/plan/schedule.h"

namespace concertina {

struct Assignment {
  int world = 1;                     // ranks; those that do not work are spare
  Layout layout;                     // with its frozen units
  Plan plan;                         // by rank
  std::vector<Bucket> buckets;       // make_buckets() with the layout's frozen units
  std::vector<BucketOwners> owners;  // of each bucket
  std::vector<UnitCost> costs;       // of each unit, as far as it trains

  std::vector<int> working;         // ranks that hold a stage, ascending
  bool keeps_frozen_state = false;  // Job::keeps_frozen_state
  /// Batches of the job that one step trains on together, with one update: its microbatches are
  /// theirs, one batch after the other. What is trained follows from (step, batches) of each step.
  int batches = 1;
  ExchangeChoice exchange{};  // of gradients and weights between the owners of a bucket

  /// Microbatches and leaves of one step.
  int microbatches(const Job& job) const { return job.microbatches * batches; }
  int leaves(const Job& job) const { return job.leaves * batches; }
  int frozen_units() const { return layout.frozen_units; }
  bool works(int rank) const { return std::binary_search(working.begin(), working.end(), rank); }
  /// Place of a working rank among them.
  int working_index(int rank) const;
};

/// The assignment of `job` to `world` ranks (0: those of the layout) by this plan of this layout,
/// whose microbatches are those of one batch of the job or of several.
Assignment make_assignment(const Job& job, Layout layout, Plan plan, int world = 0);

/// Elements of all tensors of `buckets`; a shared one counts once.
std::int64_t parameter_count(const std::vector<Bucket>& buckets);

}  // namespace concertina
