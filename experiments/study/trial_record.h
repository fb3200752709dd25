// trial.json: what came of a trial, taken from its run directory.
// Invariant: read(write(record)) == record; a record that somebody edited is refused, and nothing
// is lost by that.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/study/results.h"

namespace concertina {

struct StoredTrial {
  TrialRecord record;
  std::string study{};           // study_digest() of the study that it is of
  std::vector<TrialRung> rungs;  // ascending; empty without successive halving
};

/// The record as one JSON object with a digest of all else in it.
std::string trial_json(const StoredTrial& trial);
/// Errors name `source`.
StoredTrial read_trial_json(const std::string& text, const std::string& source);

/// Takes figures and facts from the run directory record.directory, as far as they are there.
void harvest(TrialRecord& record);

/// Why a trial failed, from its log after `begin` bytes (of earlier launches), as one line: the
/// program's last error if there is one, else the last line. Of a longer log the last MiBs count.
std::string error_in_log(const std::string& log, std::uint64_t begin = 0);
/// Explains a launcher's exit code: "killed by signal 9 (exit code 137); ...".
std::string exit_text(int code);

}  // namespace concertina
