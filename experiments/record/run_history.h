// Earlier launches as a run directory tells of them, and what a new launch may not do to it.
// Invariants: reads only, but for move_aside(); steps that were trained are never dropped without a
// word, and their log lines never deleted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/config/config.h"

namespace concertina {

struct RunHistory {
  std::optional<RunConfig> config;  // of config.toml; empty if there is none that can be read
  std::int64_t steps = 0;           // the last in metrics.jsonl
};

RunHistory read_history(const std::string& directory);

/// The "step" of the last line of the JSON lines `path` that has one; 0 without any. Only the end
/// of a long file is read.
std::int64_t last_step_in(const std::string& path);

/// Whether the run of `config` in `directory` has reached its end, and its last launch ended with
/// 0. `or_longer`: also a run that went further than `config` asks for.
bool is_finished(const std::string& directory, const RunConfig& config, bool or_longer = false);

/// Whether the run in `directory` has made a checkpoint, be it there or not.
bool has_committed(const std::string& directory);

/// "run.threads = 2 (was 1)" for each key that differs; where the run directory is does not count.
std::vector<std::string> changed_keys(const RunConfig& before, const RunConfig& now);

/// Throws bad input if steps were trained here: no commit was found to go on from. Says whether
/// `checkpoint.dir` was another one, and how to start anew.
void require_no_steps(const RunHistory& history, const RunConfig& config);

/// Renames what a run that starts anew would overwrite: metrics.jsonl.1, or the first free number.
void move_aside(const std::string& directory);

}  // namespace concertina
