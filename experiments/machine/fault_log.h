// The lines of a run's faults.jsonl, what went wrong in a supervised launch as its ranks and the
// supervisor saw it, and of its restarts.jsonl.
// Invariant: lines are appended whole; a line that cannot be read says nothing.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "core/error.h"

namespace concertina {

/// The environment variable that `concertina run` sets for its launches: the run's directory.
inline constexpr const char* kSupervisedVariable = "CONCERTINA_SUPERVISED";

enum class FaultKind : std::uint8_t {
  died,         // a rank has ended before the others
  stopped,      // a signal has stopped a rank
  hung,         // a rank makes no progress
  unreachable,  // two hosts do not hear each other
  lost,         // a host does not answer the supervisor
  launcher,     // the launcher starts no launch, or does not return from one that has ended
  ended,        // the launch has ended, and no rank said why
  // The launch ends by itself once its ranks have said why:
  refused,   // bad input
  diverged,  // training has diverged, and would again
  failed,    // any other error that is not one of a system call
};
/// "died", ...: the value of "fault" in a line.
std::string_view name_of(FaultKind kind);
/// Whether a launch with this fault ends by itself, after its last words.
inline bool ends_itself(FaultKind kind) {
  return kind >= FaultKind::refused;
}

struct LaunchFault {
  FaultKind kind{};
  std::vector<int> ranks{};        // of the world, that it happened to
  std::optional<int> by{};         // the rank that saw it
  std::string host{};              // empty: of the process that writes the line
  std::string what{};              // the error message
  std::optional<bool> in_place{};  // whether the launch may continue without these ranks
};

/// That directory; empty where nobody supervises this launch.
std::string supervised_run();
/// Appends a line, with the time, to the faults of the run in `directory`.
void append_fault(const std::string& directory, const LaunchFault& fault);
/// The same for a supervised launch; nothing where nobody supervises it.
void tell_supervisor(const LaunchFault& fault);
/// Tells it that the launch continues without the `ranks` that it has lost so far.
void tell_in_place(int ranks);

/// The fault that a line tells; nothing where it tells none.
std::optional<LaunchFault> fault_in(const nlohmann::json& line);
/// Whether a line is one of tell_in_place().
bool tells_in_place(const nlohmann::json& line);

/// One line of restarts.jsonl.
struct Restart {
  int launch = 1;       // that ended, from 1
  int ranks = 0;        // that it had
  std::string hosts{};  // that it had, "a:2,b:2"; empty: this one
  std::string why{};    // it ended
  FaultKind kind = FaultKind::ended;
  std::int64_t reached = 0;  // steps of the run that were trained then
  std::int64_t from = 0;     // the step of the checkpoint that is gone on from
  double ended_s = 0;        // from the fault, as it was seen, until all processes had ended
  double waited_s = 0;       // before the next launch
  bool in_place = false;     // the launch goes on without the ranks that died
};

void append_restart(const std::string& path, const Restart& restart);

}  // namespace concertina
