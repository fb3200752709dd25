// Resources used by a test, for tests that print and limit them.
// Invariant: only this process is measured, so other processes on the machine do not count.
#pragma once

#include <sys/resource.h>
#include <unistd.h>

#include <ctime>
#include <fstream>

namespace concertina {

/// Whether limits on time and memory apply to this build.
#if defined(__OPTIMIZE__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
inline constexpr bool kOptimised = true;
#else
inline constexpr bool kOptimised = false;
#endif

/// Returns the CPU time of all threads since the process started, in seconds.
inline double cpu_seconds() {
  return static_cast<double>(std::clock()) / CLOCKS_PER_SEC;
}

inline double resident_bytes() {
  double total = 0, resident = 0;
  std::ifstream("/proc/self/statm") >> total >> resident;
  return resident * static_cast<double>(sysconf(_SC_PAGESIZE));
}

/// Returns the highest value of resident_bytes() so far.
inline double peak_bytes() {
  rusage usage{};
  getrusage(RUSAGE_SELF, &usage);
  return 1024.0 * static_cast<double>(usage.ru_maxrss);
}

}  // namespace concertina
