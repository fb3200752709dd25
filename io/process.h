// Another program, as a child process in a process group of its own.
// Invariants: no shell reads the words; nothing of the group is left once the object is gone.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace concertina {

struct ProcessOptions {
  std::vector<std::string> words;  // the program, searched on PATH, and its arguments
  std::map<std::string, std::string> environment{};  // on top of this process'
  std::vector<int> cpus{};                           // logical; empty: as this process
  /// Descriptors that become its streams. Input and output are /dev/null where they are -1, errors
  /// go where those of this process go.
  int in = -1, out = -1, errors = -1;
  bool told_of_our_end = false;  // it gets SIGTERM when this process ends
};

class Process {
 public:
  /// Throws a failure if it cannot be started.
  explicit Process(const ProcessOptions& options);
  ~Process() { kill(); }
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;

  /// The exit code, 128 + signal if a signal ended it; nothing while it runs. Its descendants may
  /// still run then.
  std::optional<int> exit_code();
  /// exit_code() after at most so many seconds.
  std::optional<int> wait(double seconds);
  /// Sends a signal to its process group.
  void signal(int number) const;
  /// Ends its process group. False if that was done before.
  bool kill();
  bool killed() const { return pid_ < 0; }
  /// Returns the number of its process; -1 after kill().
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  std::optional<int> code_;  // it has ended; until kill() its ID stays its own
};

/// Runs a program to its end, with stdout and stderr as `output` (of a long one, the last MiB).
/// Kills it after `limit` seconds: the code is absent then.
struct ProcessResult {
  std::optional<int> code;
  std::string output;
};
ProcessResult run_process(const std::vector<std::string>& words, double limit);

}  // namespace concertina
