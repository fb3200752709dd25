// What the system says of another process, and of the threads of this one.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace concertina {

/// Whether a signal such as SIGSTOP has stopped `process`, as opposed to a debugger, or storage
/// that is slow.
bool stands_still(pid_t process);

/// What a thread of this process has done so far. Where the system does not say, it has done
/// nothing.
struct ThreadActivity {
  char state = '?';            // R runs or wants to, S sleeps, D waits for storage
  double cpu_seconds = 0;      // in steps of the system's tick, 10 ms
  double queued_seconds = 0;   // it could run, and had no core
  std::uint64_t io_bytes = 0;  // read or written: files, pipes, most sockets
  std::uint64_t faults = 0;    // pages that came from storage
};
ThreadActivity activity_of(pid_t thread);

}  // namespace concertina
