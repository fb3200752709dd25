// Equal numbers of units regardless of cost; the first ranges get the remaining units.
#include "parallel/plan/partition.h"

namespace concertina {

std::vector<UnitRange> partitioner_uniform(const std::vector<double>& costs, int parts) {
  const int units = static_cast<int>(costs.size());
  std::vector<UnitRange> ranges;
  for (int part = 0, first = 0; part < parts; ++part) {
    const int last = first + units / parts + (part < units % parts ? 1 : 0);
    ranges.push_back({first, last});
    first = last;
  }
  return ranges;
}

}  // namespace concertina
