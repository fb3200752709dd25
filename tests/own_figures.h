// What a test itself takes, for tests that print figures and hold them to bounds.
// Invariant: of this process alone, so that others on the machine do not count.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <ctime>
#include <fstream>

namespace concertina {

/// Whether this build is one that bounds on time and memory are for.
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
inline constexpr bool kOptimised = true;
#else
inline constexpr bool kOptimised = false;
#endif

/// The processor's seconds of all threads, since the process began.
inline double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

inline double resident_bytes() {
  double total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

/// The most that resident_bytes() has been.
inline double peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

}  // namespace concertina
