// Which links a prediction stands on, and what it says where it has none.
// Invariant: pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "experiments/costs/machine_model.h"
#include "parallel/plan/layout.h"
#include "parallel/simulate/costs.h"

namespace concertina {

/// `machine` with the links of `other`, its ranks on as many hosts, and its moves if it has any.
MachineModel with_links(MachineModel machine, const MachineModel& other);

/// The host of each of `ranks` ranks; empty: all are on one.
std::vector<int> hosts_of(const MachineModel& machine, int ranks);

/// Adds what a message takes on `machine`, between `ranks` ranks.
void add_links(const MachineModel& machine, int ranks, Costs& costs);

/// Where links are from: a run that measured them, a machine file, or nowhere (no name).
struct LinkSource {
  std::string name{};
  bool run = false;
};

/// Keys: from (a name or null), free (whether any ranks of `layout` that exchange something do so
/// in no time), text (the same for a person, one line).
nlohmann::ordered_json links_json(const LinkSource& source, const Layout& layout,
                                  const Costs& costs);

}  // namespace concertina
