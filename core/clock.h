// Seconds on this process' steady clock, and the time of day.
#pragma once

#include <chrono>
#include <string>

namespace concertina {

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// "2026-11-22T02:15:09.042Z": ISO 8601, UTC.
std::string utc_text();

}  // namespace concertina
