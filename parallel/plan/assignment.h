// The division of work until the next change: the layout, the plan, and what follows from them.
// Invariant: a pure value, the same on every rank, determined by (Job, Layout, Plan,
// ExchangeChoice, world), so it can be rebuilt from a printout of these.
#pragma once

#include <algorithm>
#include <vector>

#include "parallel/plan/exchange_scheme.h"
#include "parallel/plan/job.h"
#include "parallel/plan/ownership.h"
#include "parallel/plan/schedule.h"

namespace concertina {

struct Assignment {
  int world = 1;                     // number of ranks; ranks without a stage are spare
  Layout layout;                     // including its frozen units
  Plan plan;                         // by rank
  std::vector<Bucket> buckets;       // make_buckets() with the layout's frozen units
  std::vector<BucketOwners> owners;  // by bucket
  std::vector<UnitCost> costs;       // by unit, for the passes that it runs

  std::vector<int> working;         // ranks with a stage, ascending
  bool keeps_frozen_state = false;  // Job::keeps_frozen_state
  /// Number of batches of the job in one step, with one update. The step's microbatches are the
  /// microbatches of these batches, in sequence. (step, batches) determines the data of a step.
  int batches = 1;
  ExchangeChoice exchange{};  // exchange of gradients and weights between the owners of a bucket

  /// Number of microbatches and leaves of one step.
  int microbatches(const Job& job) const { return job.microbatches * batches; }
  int leaves(const Job& job) const { return job.leaves * batches; }
  int frozen_units() const { return layout.frozen_units; }
  bool works(int rank) const { return std::binary_search(working.begin(), working.end(), rank); }
  /// Index of a rank in `working`.
  int working_index(int rank) const;
};

/// Returns the assignment of `job` to `world` ranks (0: as many as in the layout) with this layout
/// and plan. The layout covers the microbatches of one or more batches of the job.
Assignment make_assignment(const Job& job, Layout layout, Plan plan, int world = 0);

/// Number of elements in all tensors of `buckets`; a shared tensor counts once.
std::int64_t parameter_count(const std::vector<Bucket>& buckets);

}  // namespace concertina
