#include "core/model/exchange_order.h"

#include <numeric>

namespace concertina {

std::vector<std::size_t> exchange_order(const std::vector<Bucket>& buckets) {
  std::vector<std::size_t> order(buckets.size());
  std::iota(order.begin(), order.end(), std::size_t{0});
  std::stable_sort(order.begin(), order.end(), [&](std::size_t a, std::size_t b) {
    return buckets[a].uses[0] > buckets[b].uses[0];
  });
  return order;
}

}  // namespace concertina
