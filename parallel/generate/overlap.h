// Which forwards of a plan can run interleaved with the backward after them.
// Invariant: pure; a plan that cannot deadlock cannot with its overlaps either.
#pragma once

#include "parallel/plan/schedule.h"

namespace concertina {

/// Marks an F as overlapped if a B or I of another microbatch stands right after it, starts
/// without a wait when the F ends (with unit costs), and can start together with it: what it needs
/// does not come from that F through other ranks. `plan` has compute actions only and passes
/// check().
Plan pair_overlaps(const Plan& plan, const Layout& layout);

}  // namespace concertina
