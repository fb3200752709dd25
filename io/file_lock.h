// A lock that a process holds until it exits, on any file system. Invariant: two processes never
// hold the same lock; if no kind of lock works, locking fails.
//
// Uses flock(2) on a file opened for writing (NFS requires that). If flock is not supported, uses
// an open-file-description lock of fcntl(2). If that is not supported either, exclusively creates a
// second file, which names its creator.
#pragma once

#include <string>

#include "io/file.h"

namespace concertina {

/// Identifies a process uniquely across hosts and reboots.
struct ProcessId {
  std::string host, boot;  // host name; random id of the host's last boot
  long pid = 0;
  std::string started;  // clock ticks from the host's boot to the start of the process
  bool operator==(const ProcessId&) const = default;
};
ProcessId this_process();

class FileLock {
 public:
  FileLock() = default;
  /// Creates the file `path` if it is absent; it remains after the lock is released. Throws
  /// Error{bad_input} naming the holder if this or another process holds the lock. `what` is the
  /// protected resource ("this run directory"), `fix` the advice.
  FileLock(const std::string& path, const std::string& what, const std::string& fix);
  ~FileLock();
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;

 private:
  File file_;
  std::string made_;  // the second file, if it is the lock
};

}  // namespace concertina
