// Restarts a training run until it is finished: `concertina run`. Invariants: one launch at a time,
// and none of its processes on this host outlives it; the run is finished when its result.json says
// so, whatever a launcher returns. A launch ends by itself, or is ended because of a report by its
// ranks (fault_log.h) or a verdict of a judge (launch_judges.h).
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/config/config.h"
#include "experiments/launcher/hosts.h"

namespace concertina {

/// A training run and how to launch it.
struct SupervisedTraining {
  RunConfig config;               // as the launches read it from `args`
  std::string launcher;           // a template, see launcher.h
  std::string program;            // value of {program}
  std::vector<std::string> args;  // of the program: train ...
  int ranks = 1;
  std::vector<Host> hosts{};          // from which {hosts} is chosen; empty: this host
  std::optional<int> max_restarts{};  // nullopt: unlimited while the run makes progress
};

struct SuperviseSummary {
  int code = 0;        // the exit code of `concertina run`
  int stopped_by = 0;  // signal received by this process
  int restarts = 0;
  int in_place = 0;                      // faults after which the launch continued by itself
  std::int64_t steps_repeated = 0;       // trained again because a launch lost them
  double seconds = 0, down_seconds = 0;  // total; from detected faults to restarts
  std::string why{};                     // reason for stopping early; empty: the run is finished
};

/// Starts launches until the run is finished, this process is asked to stop, or continuing makes no
/// sense. The process's stop signals must be blocked (signals.h). Throws Error{bad_input} if the
/// run directory cannot be used, or another process supervises the run.
SuperviseSummary supervise(const SupervisedTraining& training);

}  // namespace concertina
