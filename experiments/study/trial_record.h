// trial.json: the outcome of a trial, read from its run directory. Invariant: read(write(record))
// == record. An edited record is refused, and nothing is lost.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "experiments/study/results.h"

namespace concertina {

/// The record as an object: trial, state, error, directory, settings, figures, facts, and rungs if
/// any.
nlohmann::ordered_json to_json(const TrialRecord& record);
/// The record as a file, with the study's digest and a digest of everything else.
std::string record_text(const TrialRecord& record);
/// Errors name `source`.
TrialRecord read_record(const std::string& text, const std::string& source);

/// Reads metrics and facts from the run directory record.directory, if present.
void harvest(TrialRecord& record);

/// Why a trial failed, in one line: the program's last error, otherwise the last line, in the
/// trial's log after the first `begin` bytes (from earlier launches). Only the last few MiB of a
/// long log are read.
std::string error_in_log(const std::string& log, std::uint64_t begin = 0);
/// Explains a launcher's exit code: "killed by signal 9 (exit code 137); ...".
std::string exit_text(int code);

}  // namespace concertina
