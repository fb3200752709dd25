#include "parallel/plan/ownership.h"

#include <algorithm>

namespace concertina {

namespace {

/// The first block from `first` on of which the middle is not before `target`; `count` if there is
/// none. Middles ascend, so this is a binary search.
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

std::vector<Part> cut_bucket(const Bucket& bucket, int owners) {
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

std::vector<BucketOwners> assign_owners(const std::vector<Bucket>& buckets, const Layout& layout) {
  std::vector<BucketOwners> owners;
  for (const Bucket& bucket : buckets) {
    BucketOwners one{layout.holders(bucket.uses), {}};
    one.parts = cut_bucket(bucket, static_cast<int>(one.ranks.size()));
    owners.push_back(std::move(one));
  }
  return owners;
}

}  // namespace concertina
