// Which links a prediction stands on, and what it says where it has none.
// Invariant: pure.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "parallel/plan/layout.h"
#include "parallel/simulate/costs.h"

namespace concertina {

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
