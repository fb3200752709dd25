// A process that the study starts, with all that it starts in turn.
// Invariant: it has only the CPUs that it was given, in a process group of its own; it is told to
// end when the study dies; kill_all() leaves none of its descendants, whatever groups they made.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace concertina {

struct ChildOptions {
  std::vector<std::string> words;  // the program, searched on PATH, and its arguments
  std::map<std::string, std::string> environment;  // on top of this process'
  std::vector<int> cpus;                           // logical; empty: as this process
  std::string log;                                 // stdout and stderr are appended here
  /// In the environment of all its descendants, by which they are found.
  std::string mark;
};

class ChildProcess {
 public:
  /// Throws a failure if it cannot be started.
  explicit ChildProcess(const ChildOptions& options);
  /// Kills it with all its descendants if it still runs.
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;

  /// The exit code, 128 + signal if a signal ended it; nothing while it runs.
  std::optional<int> exit_code();
  /// To its process group.
  void signal(int number) const;
  void kill_all();

 private:
  pid_t pid_ = -1;
  std::string mark_;
  std::optional<int> code_;
};

/// SIGKILL to all processes of this user with this mark, and waits until they are gone, some
/// seconds at most. Returns how many there were.
int kill_marked(const std::string& mark);

}  // namespace concertina
