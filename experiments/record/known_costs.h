// What a run's costs.json says of its plan.
// Invariant: pure but for reading the file; a run that was killed has no such file, and its report
// is a report all the same.
#pragma once

#include <optional>
#include <string>

#include "experiments/record/run_trace.h"
#include "parallel/simulate/costs.h"

namespace concertina {

struct KnownCosts {
  std::optional<Costs> costs;  // of the plan
  std::string missing;         // why there are none
};

/// The costs that the run in `directory` measured, for `plan` at `layout`.
KnownCosts known_costs(const std::string& directory, const Layout& layout, const Plan& plan);

}  // namespace concertina
