// Starts a training run again until it is finished: `concertina run`.
// Invariants: one launch at a time, and none of its processes on this host outlives it; the run is
// finished when its result.json says so, whatever a launcher returns. Launches end by what their
// ranks say (fault_log.h), by launch_judges.h, or by themselves.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/config/config.h"
#include "experiments/launcher/hosts.h"

namespace concertina {

/// A training run as it is launched.
struct SupervisedTraining {
  RunConfig config;               // as the launches read it from `args`
  std::string launcher;           // a template, as of launcher.h
  std::string program;            // what {program} stands for
  std::vector<std::string> args;  // of the program: train ...
  int ranks = 1;
  std::vector<Host> hosts{};          // that the launcher's {hosts} are taken from; none: this one
  std::optional<int> max_restarts{};  // absent: as long as the run makes progress
};

struct SuperviseSummary {
  int code = 0;        // the exit code of `concertina run`
  int stopped_by = 0;  // a signal to this process
  int restarts = 0;
  int in_place = 0;                      // faults after which the launch went on by itself
  std::int64_t steps_repeated = 0;       // trained, and then lost with a launch
  double seconds = 0, down_seconds = 0;  // in all, and from faults seen to launches started again
  std::string why{};                     // it ended before the run did; empty: the run is finished
};

/// Launches until the run is finished, this process is told to stop, or it makes no sense to go
/// on. The process' stop signals are held (signals.h). Throws Error{bad_input} if the run
/// directory cannot be used, or another process supervises the run.
SuperviseSummary supervise(const SupervisedTraining& training);

}  // namespace concertina
