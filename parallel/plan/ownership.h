// Which holder of a bucket owns which part of it. The owner reduces the part's gradient, keeps its
// optimizer state, and updates and saves the part (stage 1 of Rajbhandari et al. 2020).
// Invariants: parts are contiguous and disjoint, cover the bucket and begin at block boundaries of
// the canonical grid (core/model/model_spec.h), so norms and hashes do not depend on the split.
#pragma once

#include <functional>
#include <vector>

#include "core/model/model_spec.h"
#include "parallel/plan/layout.h"

namespace concertina {

/// Elements [begin, end) of a bucket, which are the blocks [first_block, last_block).
struct Part {
  std::size_t begin = 0, end = 0;
  std::size_t first_block = 0, last_block = 0;
  double cost = 0;  // cost of its update, as an equivalent number of elements
  std::size_t count() const { return end - begin; }
};

/// A maximal range of one tensor within a part, in elements of the bucket.
struct TensorRun {
  int tensor = 0;
  std::size_t begin = 0, end = 0;
};

/// Returns one part per owner, of about equal size; the last ones may be empty.
std::vector<Part> split_bucket(const Bucket& bucket, int owners);
std::vector<TensorRun> tensor_runs(const Bucket& bucket, const Part& part);

/// Holders and parts of one bucket under a layout.
struct BucketOwners {
  std::vector<int> ranks;   // ascending
  std::vector<Part> parts;  // parallel to `ranks`
  /// Index of `rank` in `ranks`, or -1 if it does not hold the bucket.
  int index_of(int rank) const;
};
/// Cost of a whole tensor's update beyond that of its elements, as an equivalent element count.
using ExtraCost = std::function<double(const BucketTensor&)>;
/// FLOPs of matrix products that take as long as the rest of one element's update.
inline constexpr double kFlopsPerElement = 128;

/// `whole_tensors`: parts begin and end at tensor boundaries, chosen to balance the ranks' total
/// costs over all buckets. Parts of one bucket may differ considerably. `extra` may be null and is
/// used only for whole tensors.
std::vector<BucketOwners> assign_owners(const std::vector<Bucket>& buckets, const Layout& layout,
                                        bool whole_tensors = false, const ExtraCost& extra = {});

}  // namespace concertina
