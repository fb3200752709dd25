// Earlier launches recorded in a run directory, and what a new launch must not do to it.
// Invariants: only reads, except for move_aside(); trained steps are never dropped silently, and
// their log lines are never deleted.
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "experiments/config/config.h"

namespace concertina {

struct RunHistory {
  std::optional<RunConfig> config;  // of config.toml; empty if it is missing or unreadable
  std::int64_t steps = 0;           // last step in metrics.jsonl
};

RunHistory read_history(const std::string& directory);

/// The "step" of the last JSON line in `path` that has one; 0 if there is none. Reads only the end
/// of a long file.
std::int64_t last_step_in(const std::string& path);

/// Whether the run of `config` in `directory` is complete and its last launch exited with 0.
/// `or_longer`: a run with more steps than `config` requests also counts.
bool is_finished(const std::string& directory, const RunConfig& config, bool or_longer = false);

/// Whether the run in `directory` has ever written a checkpoint, even if it is missing now.
bool has_committed(const std::string& directory);

/// "run.threads = 2 (was 1)" for each key that differs, except the location of the run directory.
std::vector<std::string> changed_keys(const RunConfig& before, const RunConfig& now);

/// Throws Error{bad_input} if the run has trained steps but no commit was found. Reports a changed
/// `checkpoint.dir` and how to restart from step 0.
void require_no_steps(const RunHistory& history, const RunConfig& config);

/// Renames files that a restarted run would overwrite, by adding .1 or the first free number.
void move_aside(const std::string& directory);

}  // namespace concertina
