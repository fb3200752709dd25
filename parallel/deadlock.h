// Finds out whether a plan can hang, and who then waits for whom.
// Invariant: a plan without a deadlock runs to its end whatever the speed of ranks and links.
#pragma once

#include <optional>
#include <string>

#include "parallel/plan_graph.h"

namespace concertina {

/// The shortest circle of actions and messages that wait for each other, one line each; nothing if
/// the plan runs through.
/// The plan must satisfy what make_graph asks for.
std::optional<std::string> find_deadlock(const Plan& plan, const PlanIndex& index,
                                         Channels channels);

}  // namespace concertina
