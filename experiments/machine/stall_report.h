// What becomes known of a rank that makes no progress: the log, the run's events, its supervisor.
// Invariant: from any thread; nothing here waits for another rank.
#pragma once

#include <string>

#include "parallel/comm/stall.h"

namespace concertina {

/// Logs it, and appends an event to the file `events` of the run, if that is there already.
void tell_of_stall(const Stall& stall, const std::string& events);

/// Ends all ranks for `report`, of `rank`; a supervisor learns why.
[[noreturn]] void end_hung_launch(int rank, const std::string& report);

}  // namespace concertina
