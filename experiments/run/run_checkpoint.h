// Loads checkpoints of a run (checkpoint_writer.h makes them): each rank its own parts, at any
// layout. Invariants: collective; all ranks agree on what happened.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "experiments/run/best_commit.h"
#include "experiments/run/trainer.h"
#include "io/checkpoint/snapshot_file.h"

namespace concertina {

/// Loads the newest snapshot of `run`, as load_checkpoint() does, if it is of a later step than
/// `newer_than`, none later than `most`, and the hosts of the ranks have all of it together;
/// returns its step. One that cannot be used is a warning, and the state is to be loaded from
/// elsewhere. Collective.
std::optional<std::int64_t> load_snapshot(Trainer& trainer, const SnapshotRun& run,
                                          std::int64_t newer_than, std::int64_t most,
                                          const nlohmann::json& identity, nlohmann::json* stored);

/// Keeps the newest `keep` commits, and that of step `best`, on one rank; what cannot be removed is
/// a warning. Wait with it
/// for the first step after a commit: until then nobody knows whether training goes on from there.
void prune_checkpoints(const std::string& directory, int keep, std::int64_t best = -1);

/// Loads the commit at `path` (a step-... directory), or the `chosen` one below it, into the
/// engine's weights and states, and returns its step. Null if there is no commit. Throws bad input
/// that names the key, file or tensor if it is of another run or damaged, and an older commit that
/// is sound. `identity`: of this run; empty: only tensors and shapes must fit (eval, generate). The
/// units that were frozen then are frozen now. `stored`, if not null, gets what the commit keeps
/// beside the tensors: the identity, and kProgress.
std::optional<std::int64_t> load_checkpoint(Trainer& trainer, const std::string& path,
                                            const nlohmann::json& identity,
                                            nlohmann::json* stored = nullptr,
                                            Chosen chosen = Chosen::newest);

/// The input error of a `path` at which, and below which, there is no commit.
[[noreturn]] void refuse_without_commit(const std::string& path);
/// The commit at `path`, or the one below it that is meant: the same on all ranks. Collective.
/// Input error: there is none.
std::string agreed_commit(Communicator& world, const std::string& path, Chosen chosen);

/// For commands that need one: as load_checkpoint(), without an identity; no commit is an error.
std::int64_t require_checkpoint(Trainer& trainer, const std::string& path, Chosen chosen,
                                nlohmann::json* kept = nullptr);

}  // namespace concertina
