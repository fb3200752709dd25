// The lines of a run's faults.jsonl (faults of a supervised launch, as detected by its ranks and
// the supervisor) and restarts.jsonl. Invariant: lines are appended whole; an unreadable line is
// ignored.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace concertina {

/// The environment variable that `concertina run` sets to the run's directory for its launches.
inline constexpr const char* kSupervisedVariable = "CONCERTINA_SUPERVISED";

enum class FaultKind : std::uint8_t {
  died,         // a rank exited before the others
  stopped,      // a signal has stopped a rank
  hung,         // a rank makes no progress
  unreachable,  // two hosts receive no heartbeats from each other
  lost,         // a host does not respond to the supervisor
  launcher,     // the launcher starts no ranks, or does not return after they exit
  ended,        // the launch ended without a reported reason
  // The launch exits by itself after its ranks have reported one of these:
  refused,   // bad input
  diverged,  // training diverged and would do so again
  failed,    // any other error not caused by a failed system call
};
/// The value of "fault" in a line, such as "died".
std::string_view name_of(FaultKind kind);
/// Whether a launch with this fault exits by itself after reporting it.
inline bool ends_itself(FaultKind kind) {
  return kind >= FaultKind::refused;
}

struct LaunchFault {
  FaultKind kind{};
  std::vector<int> ranks{};        // affected ranks of the world
  std::optional<int> by{};         // the rank that detected it
  std::string host{};              // empty: host of the process that writes the line
  std::string what{};              // the error message
  std::optional<bool> in_place{};  // whether the launch may continue without these ranks
};

/// The value of kSupervisedVariable; empty if this launch is not supervised.
std::string supervised_run();
/// Appends a line, with a timestamp, to the faults of the run in `directory`.
void append_fault(const std::string& directory, const LaunchFault& fault);
/// Appends the fault for the supervisor; does nothing if this launch is not supervised.
void notify_supervisor(const LaunchFault& fault);
/// Reports to the supervisor that the launch continues and has lost `ranks` ranks so far.
void report_in_place(int ranks);

/// The fault that a line reports; nullopt if it reports none.
std::optional<LaunchFault> fault_in(const nlohmann::json& line);
/// Whether a line was written by report_in_place().
bool is_in_place_report(const nlohmann::json& line);

/// One line of restarts.jsonl.
struct Restart {
  int launch = 1;       // number of the launch that ended, from 1
  int ranks = 0;        // of that launch
  std::string hosts{};  // of that launch, "a:2,b:2"; empty: this host
  std::string why{};    // reason for its end
  FaultKind kind = FaultKind::ended;
  std::int64_t reached = 0;  // steps trained by then
  std::int64_t from = 0;     // step of the checkpoint to resume from
  double ended_s = 0;        // from the detection of the fault until all processes exited
  double waited_s = 0;       // from then until the next launch
  bool in_place = false;     // the launch continues without the ranks that died
};

void append_restart(const std::string& path, const Restart& restart);

}  // namespace concertina
