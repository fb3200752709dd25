// A process that the study starts, with all that it starts in turn.
// Invariant: it has only the CPUs that it was given, in a process group of its own; it is told to
// end when the study dies; kill_all() leaves none of its descendants, whatever groups they made,
// but those that left its group and cleared their environment both.
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
  /// Kills what still runs of it and its descendants.
  ~ChildProcess();
  ChildProcess(ChildProcess&& other) noexcept;
  ChildProcess& operator=(ChildProcess&&) = delete;

  /// The exit code, 128 + signal if a signal ended it; nothing while it runs. Its descendants may
  /// still run then.
  std::optional<int> exit_code();
  /// False after kill_all(): what that left cannot be ended.
  bool has_descendants() const;
  /// Sends a signal to its process group.
  void signal(int number) const;
  void kill_all();

 private:
  pid_t pid_ = -1;
  std::string mark_;
  std::optional<int> code_;  // it has ended; until kill_all() its ID stays its own
};

/// SIGKILL to all processes of this user with this mark, and waits until they are gone, some
/// seconds at most. Returns how many there were.
int kill_marked(const std::string& mark);

}  // namespace concertina
