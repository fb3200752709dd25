// Which holder of a bucket owns which part of it: reduces its gradient, keeps its optimizer state,
// updates it and saves it (optimizer state sharding, Rajbhandari et al. 2020, stage 1).
// Invariants: parts are contiguous, disjoint, cover the bucket and are cut between blocks of the
// canonical grid (core/model/model_spec.h), so norms and hashes do not depend on the cut.
#pragma once

#include <functional>
#include <vector>

#include "core/model/model_spec.h"
#include "parallel/plan/layout.h"

namespace concertina {

/// Elements [begin, end) of a bucket, and the blocks [first_block, last_block) they are.
struct Part {
  std::size_t begin = 0, end = 0;
  std::size_t first_block = 0, last_block = 0;
  double cost = 0;  // of its update: that of so many elements
  std::size_t count() const { return end - begin; }
};

/// A maximal run of one tensor inside a part, in elements of the bucket.
struct TensorRun {
  int tensor = 0;
  std::size_t begin = 0, end = 0;
};

/// One part for each of `owners` owners, of about equal size; the last ones may be empty.
std::vector<Part> cut_bucket(const Bucket& bucket, int owners);
std::vector<TensorRun> tensor_runs(const Bucket& bucket, const Part& part);

/// Holders and parts of one bucket under a layout.
struct BucketOwners {
  std::vector<int> ranks;   // ascending
  std::vector<Part> parts;  // of each rank
  /// Index of `rank` in `ranks`, -1 if it does not hold the bucket.
  int index_of(int rank) const;
};
/// The cost of a whole tensor's update beside its elements, as that of so many elements.
using ExtraCost = std::function<double(const BucketTensor&)>;
/// Products of an update that take about as long as the rest of the update of one element does.
inline constexpr double kFlopsPerElement = 128;

/// `whole_tensors`: parts begin and end with tensors, cut so that costs are shared evenly over all
/// buckets of a rank, as far as tensors allow; parts of one bucket may differ a lot. `extra`: null
/// is none; only for whole tensors.
std::vector<BucketOwners> assign_owners(const std::vector<Bucket>& buckets, const Layout& layout,
                                        bool whole_tensors = false, const ExtraCost& extra = {});

}  // namespace concertina
