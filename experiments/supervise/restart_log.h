// What went wrong in a supervised launch, as its ranks saw it and as the supervisor wrote it down.
// Invariants: lines are appended whole; a line that cannot be read says nothing.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace concertina {

/// One line of faults.jsonl: what a rank saw before it ended the launch.
struct Fault {
  std::string kind;  // "died", "stopped", "unreachable" or kRefused; of the supervisor, "lost"
  std::vector<int> ranks;  // of the world, that it happened to
  std::string what;        // the error message
  std::string time;        // utc_text()
  bool in_place = false;   // the launch may go on by itself
};

/// The first fault among lines of faults.jsonl.
std::optional<Fault> first_fault(const std::vector<nlohmann::json>& lines);

/// One line of restarts.jsonl.
struct Restart {
  int launch = 1;            // that ended, from 1
  int ranks = 0;             // that it had
  std::string hosts{};       // that it had, "a:2,b:2"; empty: this one
  std::string why{};         // it ended
  std::string kind{};        // of its fault, "ended" where no rank saw one
  std::int64_t reached = 0;  // steps of the run that were trained then
  std::int64_t from = 0;     // the step of the checkpoint that is gone on from
  double ended_s = 0;        // from the fault, as it was seen, until all processes had ended
  double waited_s = 0;       // before the next launch
  bool in_place = false;     // the launch goes on without the ranks that died
};

void append_restart(const std::string& path, const Restart& restart);

}  // namespace concertina
