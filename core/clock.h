// Seconds on this process' steady clock.
#pragma once

#include <chrono>

namespace concertina {

inline double now() {
  return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace concertina
