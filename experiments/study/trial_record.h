// trial.json: what came of a trial, taken from its run directory.
// Invariant: read(write(record)) == record; a record that somebody edited is refused, and nothing
// is lost by that.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "experiments/study/results.h"

namespace concertina {

/// The record as an object: trial, state, error, directory, settings, figures, facts; rungs where
/// there are some.
nlohmann::ordered_json to_json(const TrialRecord& record);
/// The same as a file, with the study and a digest of all else in it.
std::string record_text(const TrialRecord& record);
/// Errors name `source`.
TrialRecord read_record(const std::string& text, const std::string& source);

/// Takes figures and facts from the run directory record.directory, as far as they are there.
void harvest(TrialRecord& record);

/// Why a trial failed, from its log after `begin` bytes (of earlier launches), as one line: the
/// program's last error if there is one, else the last line. Of a longer log the last MiBs count.
std::string error_in_log(const std::string& log, std::uint64_t begin = 0);
/// Explains a launcher's exit code: "killed by signal 9 (exit code 137); ...".
std::string exit_text(int code);

}  // namespace concertina
