#include "parallel/comm/nccl_pairs.h"

#include <algorithm>

#include "core/error.h"
#include "core/index.h"

namespace concertina {

Wishes gather_wishes(Communicator& control, std::span<const int> peers) {
  const auto size = at(control.size());
  std::vector<std::byte> mine(size);
  for (const int peer : peers) {
    CONCERTINA_CHECK(peer >= 0 && peer < control.size(), "connect names rank {} of {}", peer, size);
    mine[at(peer)] = std::byte{1};
  }
  Wishes wishes(size, std::vector<std::byte>(size));
  control.all_gather(mine, std::vector<Bytes>(wishes.begin(), wishes.end())).wait();
  return wishes;
}

std::vector<std::vector<Pair>> pair_rounds(const Wishes& wishes, std::vector<Pair>& known) {
  const int size = static_cast<int>(wishes.size());
  std::vector<Pair> missing;
  for (int low = 0; low < size; ++low)
    for (int high = low + 1; high < size; ++high) {
      const Pair pair{low, high};
      if ((wishes[at(low)][at(high)] | wishes[at(high)][at(low)]) == std::byte{}) continue;
      if (std::find(known.begin(), known.end(), pair) == known.end()) missing.push_back(pair);
    }
  known.insert(known.end(), missing.begin(), missing.end());
  return disjoint_rounds(missing);
}

}  // namespace concertina
