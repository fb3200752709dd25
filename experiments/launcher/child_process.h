// A launcher as a child process, with all that it starts in turn.
// Invariant: it has only the CPUs that it was given, in a process group of its own; it is told to
// end when this process dies; kill_all() leaves none of its descendants, whatever groups they made,
// but those that left its group and cleared their environment both.
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
  std::string log;  // stdout and stderr are appended here; empty: they go where `process` says
  /// A variable in the environment of all its descendants, by which they are found.
  std::string mark;
  std::string program;  // the path of what words[0] launches; empty: nobody asks
};

/// What a look at the processes of a launch on this host has found.
struct ProcessFacts {
  double at = 0;            // when, by now()
  std::size_t ranks = 0;    // processes that execute the program
  std::size_t stopped = 0;  // of these, by a signal
  std::size_t started = 0;  // ranks that MPI says it started here; 0: it does not say, yet
  bool launcher_stopped = false;
  bool begun = false;  // its ranks have loaded what they start from, as its supervisor knows
};

class ChildProcess {
 public:
  /// Throws a failure if it cannot be started.
  explicit ChildProcess(ChildOptions options);
  /// Kills what still runs of it and its descendants.
  ~ChildProcess() { kill_all(); }
  ChildProcess(ChildProcess&&) = default;
  ChildProcess& operator=(ChildProcess&&) = delete;

  std::optional<int> exit_code() { return process_.exit_code(); }
  /// False after kill_all(): what that left cannot be ended.
  bool has_descendants() const;
  /// Looks for what runs ChildOptions::program here. Takes note of the files that MPI has for these
  /// processes, which kill_all() removes: nobody else does after a SIGKILL.
  /// Cost: it looks through all processes of this host and all that these have mapped at first, or
  /// once one has ended; later ever more rarely, as that takes time from the ranks.
  ProcessFacts look();
  /// Sends a signal to its process group.
  void signal(int number) const { process_.signal(number); }
  /// SIGKILL to what runs ChildOptions::program here: its launcher can clear up after it.
  void kill_program();
  void kill_all();

 private:
  std::string mark_, program_;
  std::set<std::string> shared_;       // files and folders of MPI
  std::vector<pid_t> found_;           // processes of the program
  double started_, look_through_ = 0;  // by now(): and when to look through all processes again
  std::size_t started_here_ = 0;       // ProcessFacts::started
  Process process_;
};

/// The processes of this host with this mark, but this one, ascending; `program`: that they
/// execute, empty: any.
std::vector<pid_t> marked(const std::string& mark, const std::string& program = "");
/// SIGKILL to all processes of this user on this host with this mark, and waits until they are
/// gone, some seconds at most. Returns how many there were.
int kill_marked(const std::string& mark);

}  // namespace concertina
