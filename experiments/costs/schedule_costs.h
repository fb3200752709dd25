// What `schedule --costs` means: seconds for every stage, or what the units of a run took.
// Invariant: pure but for reading the file; a run's model is cut over a layout's stages as `train`
// would cut it.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "experiments/costs/measured_costs.h"

namespace concertina {

class ScheduleCosts {
 public:
  /// `words`: three numbers F, I and W, or one path (see read_costs()).
  explicit ScheduleCosts(const std::vector<std::string>& words);

  bool measured() const { return source_.has_value(); }
  /// Of the run's model: no layout can have more stages. Nothing where there is none.
  std::optional<int> units() const;
  /// `share`: what part of the three numbers a stage takes.
  Costs of(const Layout& layout, const Plan& plan, double share = 1) const;

 private:
  Costs measured_costs(const Layout& layout, const Plan& plan) const;

  StageCosts stage_;
  std::optional<CostSource> source_;
};

}  // namespace concertina
