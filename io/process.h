// A child process in a separate process group. Invariants: no shell interprets the arguments, and
// no process in the group remains after the object is destroyed.
#pragma once

#include <sys/types.h>

#include <map>
#include <optional>
#include <string>
#include <vector>

namespace concertina {

struct ProcessOptions {
  std::vector<std::string> words;  // the program, looked up on PATH, and its arguments
  std::map<std::string, std::string> environment{};  // added to that of this process
  std::vector<int> cpus{};                           // logical CPUs; empty: inherited
  /// Descriptors for the standard streams. -1 means /dev/null for input and output, and the
  /// inherited stream for errors.
  int in = -1, out = -1, errors = -1;
  bool terminate_with_parent = false;  // receives SIGTERM when this process exits
};

class Process {
 public:
  /// Throws if the process cannot be started.
  explicit Process(const ProcessOptions& options);
  ~Process() { kill(); }
  Process(Process&& other) noexcept;
  Process& operator=(Process&&) = delete;

  /// Returns the exit code, 128 + signal if it was killed by a signal, or nothing while the process
  /// runs. Its descendants may still be running afterwards.
  std::optional<int> exit_code();
  /// Waits at most `seconds`, then returns exit_code().
  std::optional<int> wait(double seconds);
  /// Sends a signal to the process group.
  void signal(int number) const;
  /// Kills the process group. Returns false if that has already been done.
  bool kill();
  bool killed() const { return pid_ < 0; }
  /// Returns the process ID, or -1 after kill().
  pid_t pid() const { return pid_; }

 private:
  pid_t pid_ = -1;
  std::optional<int> code_;  // set after exit; the ID stays reserved until kill()
};

/// The outcome of run_process(). `output` is stdout and stderr (at most the last MiB). `code` is
/// absent if the process was killed after `limit` seconds.
struct ProcessResult {
  std::optional<int> code;
  std::string output;
};
ProcessResult run_process(const std::vector<std::string>& words, double limit);

}  // namespace concertina
