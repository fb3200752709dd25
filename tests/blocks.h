// The canonical grid of a bucket as a list: what core/model/model_spec.h says by arithmetic.
#pragma once

#include <algorithm>
#include <vector>

#include "core/model/model_spec.h"

namespace concertina {

inline std::vector<Block> make_blocks(const Bucket& bucket) {
  std::vector<Block> blocks;
  for (int t = 0; t < static_cast<int>(bucket.tensors.size()); ++t) {
    const BucketTensor& tensor = bucket.tensors[static_cast<std::size_t>(t)];
    for (std::size_t at = 0; at < tensor.count; at += kBlock)
      blocks.push_back({t, tensor.offset + at, std::min(kBlock, tensor.count - at)});
  }
  return blocks;
}

}  // namespace concertina
