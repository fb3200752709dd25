// A launcher as a child process, with all its descendants. Invariant: it runs only on the given
// CPUs, in a separate process group, and is signaled when this process dies. kill_all() kills all
// descendants except those that left its group and cleared their environment.
#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "core/process_state.h"
#include "io/process.h"

namespace concertina {

struct ChildOptions {
  ProcessOptions process;
  std::string log;  // stdout and stderr are appended here; empty: use `process`
  /// A variable in the environment of all descendants, which identifies them.
  std::string mark;
  std::string program;  // path of the program that words[0] launches; empty: not needed
};

/// A snapshot of a launch's processes on this host.
struct ProcessFacts {
  double at = 0;            // time of the snapshot by the clock of now()
  std::size_t ranks = 0;    // processes that execute the program
  std::size_t stopped = 0;  // of these, stopped by a signal
  std::size_t started = 0;  // ranks that MPI started here; 0: unknown so far
  bool launcher_stopped = false;
  bool begun = false;  // all ranks have loaded their state; set by the supervisor
};

class ChildProcess {
 public:
  /// Throws Error{failure} if the launcher cannot be started.
  explicit ChildProcess(ChildOptions options);
  /// Kills the launcher and its remaining descendants.
  ~ChildProcess() { kill_all(); }
  ChildProcess(ChildProcess&&) = default;
  ChildProcess& operator=(ChildProcess&&) = delete;

  std::optional<int> exit_code() { return process_.exit_code(); }
  /// Returns false after kill_all(): processes that survived it cannot be killed.
  bool has_descendants() const;
  /// Finds the processes that run ChildOptions::program on this host. Also records the files that
  /// MPI created for them, which kill_all() removes, since nothing else does after a SIGKILL. Cost:
  /// it scans all processes on this host at first and whenever one of those found has exited,
  /// otherwise at increasing intervals, because scans take CPU time from the ranks.
  ProcessFacts look();
  /// Sends a signal to the launcher's process group.
  void signal(int number) const { process_.signal(number); }
  /// Sends SIGKILL to the processes of ChildOptions::program, so that the launcher can clean up.
  void kill_program();
  void kill_all();

 private:
  std::string mark_, program_;
  std::set<std::string> shared_;       // files and folders created by MPI
  std::vector<pid_t> found_;           // processes that run the program
  double started_, look_through_ = 0;  // by the clock of now(); when to scan all processes
  std::size_t started_here_ = 0;       // ProcessFacts::started
  Process process_;
};

/// The processes on this host with this mark, in ascending order, except the calling process.
/// `program`: the program that they must execute; empty: any.
std::vector<pid_t> marked(const std::string& mark, const std::string& program = "");
/// Sends SIGKILL to all of this user's processes on this host with this mark and waits a few
/// seconds for them to exit. Returns their number.
int kill_marked(const std::string& mark);

}  // namespace concertina
