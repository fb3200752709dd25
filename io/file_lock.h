// A lock that one process holds until it ends, whatever the file system.
// Invariant: two processes never hold the same lock; where no kind of lock works, taking it fails.
//
// flock(2) on a file that is open for writing (NFS refuses it on anything else); where that is
// refused, an open-file-description lock of fcntl(2); where that is refused too, a second file that
// only one process can create and that names its maker.
#pragma once

#include <string>

#include "io/file.h"

namespace concertina {

/// A process, as another one on any host can tell it from all others.
struct ProcessId {
  std::string host, boot;  // host name; random id of the host's last start
  long pid = 0;
  std::string started;  // ticks between the host's start and the process'
  bool operator==(const ProcessId&) const = default;
};
ProcessId this_process();

class FileLock {
 public:
  FileLock() = default;
  /// Creates the file `path` if it is absent; it stays when the lock is released. Bad input that
  /// names the holder if another process, or this one, holds the lock: `what` is what it protects
  /// ("this run directory"), `fix` what to do.
  FileLock(const std::string& path, const std::string& what, const std::string& fix);
  ~FileLock();
  FileLock(FileLock&& other) noexcept;
  FileLock& operator=(FileLock&& other) noexcept;

 private:
  File file_;
  std::string made_;  // the second file, where it is what locks
};

}  // namespace concertina
