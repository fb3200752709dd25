#include "experiments/machine/host_ranks.h"

#include <algorithm>
#include <string>

#include "core/host_name.h"
#include "experiments/machine/gather.h"

namespace concertina {

std::vector<int> host_of_ranks(Communicator& world) {
  std::vector<std::string> names;
  std::vector<int> hosts;
  for (const nlohmann::json& one : gather_json(world, host_name())) {
    const auto found = std::find(names.begin(), names.end(), one.get<std::string>());
    hosts.push_back(static_cast<int>(found - names.begin()));
    if (found == names.end()) names.push_back(one.get<std::string>());
  }
  return hosts;
}

int ranks_per_host(const std::vector<int>& hosts) {
  const int first = static_cast<int>(std::count(hosts.begin(), hosts.end(), 0));
  if (first == static_cast<int>(hosts.size())) return 0;
  for (std::size_t rank = 0; rank < hosts.size(); ++rank)
    if (hosts[rank] != static_cast<int>(rank) / first) return 0;
  return first;
}

}  // namespace concertina
