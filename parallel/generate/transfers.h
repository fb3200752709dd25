// SEND and RECV where neighbour stages are on different ranks.
// Invariant: pure; all rows follow one order of the transfers, so that no two ranks disagree.
#pragma once

#include "parallel/plan/schedule.h"
#include "parallel/simulate/costs.h"

namespace concertina {

/// SEND right after what produces, and RECV before what consumes, wherever neighbour stages are on
/// different ranks. All transfers get one order, that of their producers' ends, and every row
/// follows it: so no two ranks ever disagree, even on one stream per rank. In that order a RECV is
/// posted one compute action before its consumer where it can be. `costs`: of the stages and links
/// that the ends are of.
Plan add_transfers(const Plan& plan, const Layout& layout, const Costs& costs);

/// The same with unit costs: a schedule's order is made once, for balanced stages.
Plan add_transfers(const Plan& plan, const Layout& layout);

}  // namespace concertina
