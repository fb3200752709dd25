// Reports to the log, the run's events and its supervisor that a rank is stuck. Invariant:
// thread-safe; nothing here waits for another rank.
#pragma once

#include <string>

#include "parallel/comm/stall.h"

namespace concertina {

/// Logs the stall and appends an event to the run's file `events` if that exists.
void report_stall(const Stall& stall, const std::string& events);

/// Logs `report`, which is about `rank`, informs any supervisor and aborts all ranks.
[[noreturn]] void end_hung_launch(int rank, const std::string& report);

}  // namespace concertina
