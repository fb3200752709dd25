// Which cores trials that run side by side have.
// Invariant: no core is given to two trials at a time, and none that the study may not use.
#pragma once

#include <optional>
#include <vector>

namespace concertina {

class CoreBudget {
 public:
  /// `cores`: one logical CPU of each core that there is to give.
  explicit CoreBudget(std::vector<int> cores) : free_(cores), all_(std::move(cores)) {}

  int count() const { return static_cast<int>(all_.size()); }
  /// So many cores, or all where there are fewer; nothing while they are not free.
  std::optional<std::vector<int>> take(int cores);
  void give_back(const std::vector<int>& cores);

 private:
  std::vector<int> free_, all_;  // ascending
};

}  // namespace concertina
