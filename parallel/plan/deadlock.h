// Finds out whether a plan can hang, and who then waits for whom.
// Invariant: a plan without a deadlock runs to its end whatever the speed of ranks and links.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "parallel/plan/plan_graph.h"

namespace concertina {

/// Ranks and messages that wait for each other, when nothing else can go on.
struct Cycle {
  /// A line per wait: who, for what, and why that does not come. Long ones leave out the middle.
  std::string text;
  std::vector<Place> places;  // of the actions in `text`, each once
  bool send_buffer = false;   // one of them waits for the buffer of its own earlier SEND
};

/// The shortest cycle at the place where the plan stops, or nothing if it runs through. A plan
/// stops in one place only, whatever the speeds: each wait is for one particular thing.
/// The plan must satisfy what make_graph asks for, and channels must agree on their order.
std::optional<Cycle> find_deadlock(const Plan& plan, const PlanIndex& index, Channels channels);

}  // namespace concertina
