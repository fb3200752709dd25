// Loads a run's checkpoints, written by checkpoint_writer.h: each rank loads its parts, in any
// layout. Invariants: collective; all ranks agree on the outcome.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "experiments/run/best_commit.h"
#include "experiments/run/trainer.h"
#include "io/checkpoint/snapshot_file.h"

namespace concertina {

/// Loads the newest snapshot of `run` like load_checkpoint() if its step is later than `newer_than`
/// and at most `most`, and the ranks' hosts together have all parts of it; returns its step. Logs a
/// warning if it cannot be used: the state must then be loaded from elsewhere. Collective.
std::optional<std::int64_t> load_snapshot(Trainer& trainer, const SnapshotRun& run,
                                          std::int64_t newer_than, std::int64_t most,
                                          const nlohmann::json& identity, nlohmann::json* stored);

/// Removes all commits except the newest `keep` and the commit of step `best`. Call it on one rank,
/// and only after the first step that follows a commit: until then it is unknown whether training
/// can continue from that commit. Logs a warning if a commit cannot be removed.
void prune_checkpoints(const std::string& directory, int keep, std::int64_t best = -1);

/// Loads the commit at `path` (a step-... directory), or the `chosen` one below it, into the
/// engine's weights and optimizer states, and returns its step; nullopt if there is no commit.
/// Throws Error{bad_input} that names the key, file or tensor if the commit is from another run or
/// damaged, and suggests an older intact one. `identity`: this run's; if empty, only tensor names
/// and shapes must match (eval, generate). Restores the number of frozen units. `stored`, if not
/// null, receives the commit's metadata: the identity, and kProgress.
std::optional<std::int64_t> load_checkpoint(Trainer& trainer, const std::string& path,
                                            const nlohmann::json& identity,
                                            nlohmann::json* stored = nullptr,
                                            const CheckpointChoice& choice = {});

/// Throws Error{bad_input} for a `path` without a commit at or below it.
[[noreturn]] void refuse_without_commit(const std::string& path);
/// The commit at `path`, or the `chosen` one below it: the same on all ranks. Collective. Throws
/// Error{bad_input} if there is none.
std::string agreed_commit(Communicator& world, const std::string& path, Chosen chosen);

/// Like load_checkpoint() without an identity, but throws if there is no commit.
std::int64_t require_checkpoint(Trainer& trainer, const std::string& path,
                                const CheckpointChoice& choice, nlohmann::json* kept = nullptr);

}  // namespace concertina
