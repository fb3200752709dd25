// Determines whether a plan can hang, and which actions then wait for each other.
// Invariant: a plan without a deadlock completes at any speed of ranks and links.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "parallel/plan/plan_graph.h"

namespace concertina {

/// Ranks and messages that wait for each other when nothing else can proceed.
struct Cycle {
  /// One line per wait: who waits, for what, and why it does not arrive. The middle of long cycles
  /// is omitted.
  std::string text;
  std::vector<Place> places;  // places of the actions in `text`, each once
  bool send_buffer = false;   // whether a rank waits for the buffer of an earlier SEND of its own
};

/// Returns the shortest cycle in the state where the plan blocks, or nothing if it completes. The
/// state does not depend on speeds, because each wait is for one particular event. The plan must
/// meet the requirements of make_graph(), and both ends of a channel must order messages alike.
std::optional<Cycle> find_deadlock(const Plan& plan, const PlanIndex& index, Channels channels);

}  // namespace concertina
