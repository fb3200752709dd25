#include "experiments/study/core_budget.h"

#include <algorithm>

namespace concertina {

std::optional<std::vector<int>> CoreBudget::take(int cores) {
  const auto wanted = static_cast<std::ptrdiff_t>(std::clamp(cores, 1, count()));
  if (std::ssize(free_) < wanted) return std::nullopt;
  std::vector<int> taken(free_.begin(), free_.begin() + wanted);
  free_.erase(free_.begin(), free_.begin() + wanted);
  return taken;
}

void CoreBudget::give_back(const std::vector<int>& cores) {
  free_.insert(free_.end(), cores.begin(), cores.end());
  std::ranges::sort(free_);
}

}  // namespace concertina
