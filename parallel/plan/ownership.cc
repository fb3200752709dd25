#include "parallel/plan/ownership.h"

#include <algorithm>
#include <limits>
#include <map>

namespace concertina {

namespace {

/// Returns the first block at or after `first` whose middle is not before `target`, or `count`.
/// Uses binary search, because middles ascend.
std::size_t block_near(const Bucket& bucket, std::size_t first, std::size_t count,
                       std::size_t target) {
  while (first < count) {
    const std::size_t middle = first + (count - first) / 2;
    const Block block = block_at(bucket, middle);
    if (block.offset + block.count / 2 < target)
      first = middle + 1;
    else
      count = middle;
  }
  return first;
}

}  // namespace

std::vector<Part> split_bucket(const Bucket& bucket, int owners) {
  const std::size_t blocks = block_count(bucket);
  const auto offset = [&](std::size_t block) {
    return block < blocks ? block_at(bucket, block).offset : bucket.elements;
  };
  std::vector<Part> parts;
  std::size_t block = 0;
  for (int i = 0; i < owners; ++i) {
    const std::size_t target =
        bucket.elements * static_cast<std::size_t>(i + 1) / static_cast<std::size_t>(owners);
    Part part{.begin = offset(block), .first_block = block};
    block = i + 1 == owners ? blocks : block_near(bucket, block, blocks, target);
    part.last_block = block;
    part.end = offset(block);
    part.cost = static_cast<double>(part.count());
    parts.push_back(part);
  }
  return parts;
}

std::vector<TensorRun> tensor_runs(const Bucket& bucket, const Part& part) {
  std::vector<TensorRun> runs;
  for (int t = 0; t < static_cast<int>(bucket.tensors.size()); ++t) {
    const BucketTensor& tensor = bucket.tensors[static_cast<std::size_t>(t)];
    const std::size_t begin = std::max(part.begin, tensor.offset);
    const std::size_t end = std::min(part.end, tensor.offset + tensor.count);
    if (begin < end) runs.push_back({t, begin, end});
  }
  return runs;
}

int BucketOwners::index_of(int rank) const {
  const auto at = std::lower_bound(ranks.begin(), ranks.end(), rank);
  return at != ranks.end() && *at == rank ? static_cast<int>(at - ranks.begin()) : -1;
}

namespace {

/// Returns how many tensors of `bucket`, in order, each holder receives, given their `loads` so
/// far. Minimizes the sum of squared loads by dynamic programming over (holder, tensors before it)
/// in O(holders * tensors^2).
std::vector<std::size_t> share_tensors(const Bucket& bucket, const std::vector<double>& loads,
                                       const ExtraCost& extra) {
  const std::size_t tensors = bucket.tensors.size(), holders = loads.size();
  std::vector<double> before(tensors + 1, 0);  // prefix sums of the tensors' costs
  for (std::size_t t = 0; t < tensors; ++t)
    before[t + 1] = before[t] + static_cast<double>(bucket.tensors[t].count) +
                    (extra ? extra(bucket.tensors[t]) : 0);
  constexpr double kNever = std::numeric_limits<double>::infinity();
  // cost[h][t]: lowest cost of holders h and later if they have tensors t and later.
  std::vector<std::vector<double>> cost(holders + 1, std::vector<double>(tensors + 1, kNever));
  std::vector<std::vector<std::size_t>> end(holders, std::vector<std::size_t>(tensors + 1, 0));
  cost[holders][tensors] = 0;
  for (std::size_t h = holders; h-- > 0;)
    for (std::size_t t = 0; t <= tensors; ++t)
      for (std::size_t next = t; next <= tensors; ++next) {
        const double share = before[next] - before[t];
        const double sum = (2 * loads[h] + share) * share + cost[h + 1][next];
        if (sum < cost[h][t]) cost[h][t] = sum, end[h][t] = next;
      }
  std::vector<std::size_t> shares;
  for (std::size_t h = 0, t = 0; h < holders; ++h) {
    shares.push_back(end[h][t] - t);
    t = end[h][t];
  }
  return shares;
}

/// Returns one part per holder with its share of the tensors.
std::vector<Part> whole_parts(const Bucket& bucket, const std::vector<std::size_t>& shares,
                              const ExtraCost& extra) {
  std::vector<Part> parts;
  std::size_t tensor = 0, block = 0;
  const auto offset = [&] {
    return tensor < bucket.tensors.size() ? bucket.tensors[tensor].offset : bucket.elements;
  };
  for (const std::size_t share : shares) {
    Part part{.begin = offset(), .first_block = block};
    for (std::size_t i = 0; i < share; ++i, ++tensor) {
      block += block_count(bucket.tensors[tensor]);
      if (extra) part.cost += extra(bucket.tensors[tensor]);
    }
    part.end = offset();
    part.cost += static_cast<double>(part.count());
    part.last_block = block;
    parts.push_back(part);
  }
  return parts;
}

}  // namespace

std::vector<BucketOwners> assign_owners(const std::vector<Bucket>& buckets, const Layout& layout,
                                        bool whole_tensors, const ExtraCost& extra) {
  std::vector<BucketOwners> owners;
  std::map<int, double> loads;  // by rank: cost so far
  for (const Bucket& bucket : buckets) {
    BucketOwners one{layout.holders(bucket.uses), {}};
    if (whole_tensors) {
      std::vector<double> held;
      for (const int rank : one.ranks) held.push_back(loads[rank]);
      one.parts = whole_parts(bucket, share_tensors(bucket, held, extra), extra);
      for (std::size_t i = 0; i < one.ranks.size(); ++i) loads[one.ranks[i]] += one.parts[i].cost;
    } else {
      one.parts = split_bucket(bucket, static_cast<int>(one.ranks.size()));
    }
    owners.push_back(std::move(one));
  }
  return owners;
}

}  // namespace concertina
