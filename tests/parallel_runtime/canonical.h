// The canonical sum of gradients by definition (parallel/plan/reduction_tree.h), computed serially,
// and gradients whose sum depends on the order of additions.
#pragma once

#include <bit>
#include <cmath>
#include <cstddef>
#include <vector>

#include "core/model/model_spec.h"
#include "core/rng.h"

namespace concertina {

/// Magnitudes from 2^-12 to 2^12 of either sign: another order of additions rounds differently.
inline float gradient_value(int bucket, int use, int microbatch, std::size_t element) {
  const auto words =
      Rng(5, Purpose::sample)
          .words(static_cast<std::uint32_t>(bucket), static_cast<std::uint32_t>(use),
                 static_cast<std::uint32_t>(microbatch), static_cast<std::uint32_t>(element));
  const float mantissa = 1.0F + static_cast<float>(words[0] >> 8) * 0x1p-24F;
  const float value = std::ldexp(mantissa, static_cast<int>(words[1] % 25U) - 12);
  return (words[2] & 1U) != 0U ? value : -value;
}

/// Returns the node over leaves [first, last) for one element.
inline float node_sum(int bucket, int use, std::size_t element, int first, int last,
                      int leaf_microbatches) {
  if (last - first == 1) {
    float sum = gradient_value(bucket, use, first * leaf_microbatches, element);
    for (int m = first * leaf_microbatches + 1; m < last * leaf_microbatches; ++m)
      sum += gradient_value(bucket, use, m, element);
    return sum;
  }
  const int left = static_cast<int>(std::bit_floor(static_cast<unsigned>(last - first - 1)));
  return node_sum(bucket, use, element, first, first + left, leaf_microbatches) +
         node_sum(bucket, use, element, first + left, last, leaf_microbatches);
}

/// Returns the gradient of one element of a bucket: the sum of its uses in unit order.
inline float canonical_sum(const Bucket& bucket, int index, std::size_t element, int microbatches,
                           int leaves) {
  float sum = node_sum(index, bucket.uses[0], element, 0, leaves, microbatches / leaves);
  for (std::size_t u = 1; u < bucket.uses.size(); ++u)
    sum += node_sum(index, bucket.uses[u], element, 0, leaves, microbatches / leaves);
  return sum;
}

}  // namespace concertina
