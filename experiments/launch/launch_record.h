// launches.jsonl: one line a launch of `train`, so that what a run directory holds can be traced to
// what was started, where and by which program.
// Invariants: the line is there from the start, without an end while the launch goes on or if it
// was killed; lines of other launches stay as they are; nothing here ends a run.
#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "experiments/launch/launch.h"

namespace concertina {

/// What is known when training starts. `from`: steps done before.
nlohmann::ordered_json launch_facts(const Launch& launch, std::int64_t from);

class LaunchRecord {
 public:
  /// Appends `facts`, without an end, to `path`.
  LaunchRecord(std::string path, nlohmann::ordered_json facts);

  /// The launch is over at step `to`: fills in the end of its line.
  void end(std::int64_t to, int exit_code);

 private:
  std::string path_;
  nlohmann::ordered_json line_;
};

/// Copies a schedule file into `directory` as schedule-<start of its SHA-256>.csv, and returns
/// {"file", "copy", "sha256"}; the schedule's name otherwise.
nlohmann::ordered_json keep_schedule(const RunConfig& config, const std::string& directory);

}  // namespace concertina
