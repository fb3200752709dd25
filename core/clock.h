// Seconds on the process's steady clock, and the time of day.
#pragma once

#include <chrono>
#include <string>

namespace concertina {

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

/// Returns the time in ISO 8601, UTC: "2026-11-22T02:15:09.042Z".
std::string utc_text();

}  // namespace concertina
