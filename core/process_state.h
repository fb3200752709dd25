// What the operating system reports about another process, and about the threads of this one.
#pragma once

#include <sys/types.h>

#include <cstdint>

namespace concertina {

/// Whether a signal such as SIGSTOP has stopped `process`, as opposed to a debugger or slow
/// storage.
bool is_stopped(pid_t process);

/// The activity of a thread of this process so far; all zero if the system does not report it.
struct ThreadActivity {
  char state = '?';            // R running or runnable, S sleeping, D waiting for storage
  double cpu_seconds = 0;      // in units of the system's 10 ms tick
  double queued_seconds = 0;   // runnable, but without a core
  std::uint64_t io_bytes = 0;  // read or written: files, pipes, most sockets
  std::uint64_t faults = 0;    // pages read from storage
};
ThreadActivity activity_of(pid_t thread);

}  // namespace concertina
