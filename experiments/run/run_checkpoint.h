// Checkpoints of a run: each rank saves and loads its own parts, at any layout.
// Invariants: collective; all ranks agree on what happened; a failure to save leaves the last
// commit as it was; no state that has diverged is committed.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "experiments/run/rank_engine.h"

namespace concertina {

/// Key of an identity: the SHA-256 of the whole text. Checkpoints of older versions lack it.
inline constexpr const char* kWholeText = "data.text.sha256";

/// What of a config and its data decides the bits of a run: a checkpoint keeps it, and a resume
/// with another one is refused key by key, but for what a resume may change (may_change()).
nlohmann::json numerics_identity(const RunConfig& config, const RunPlan& run,
                                 const std::string& data_fingerprint);

/// Whether a run may go on with another value of this key of its identity: the precision, the
/// device, the instruction set, oneDNN's version, the end of the learning rate. It is said in the
/// log.
bool may_change(std::string_view key);

/// Writes step `step` below `directory` and commits it. Throws the same Error on every rank if any
/// rank failed; its system_error() is 0 unless the file system refused.
void save_checkpoint(RankEngine& engine, const std::string& directory, std::int64_t step,
                     const nlohmann::json& identity);

/// Keeps the newest `keep` commits, on one rank; what cannot be removed is a warning. Wait with it
/// for the first step after a commit: until then nobody knows whether training goes on from there.
void prune_checkpoints(const std::string& directory, int keep);

/// Loads the commit at `path` (a step-... directory), or the newest below it, into the engine's
/// weights and states, and returns its step. Null if there is no commit. Throws bad input that
/// names the key, file or tensor if it is of another run or damaged, and an older commit that is
/// sound. `identity`: of this run; empty: only tensors and shapes must fit (eval, generate).
/// `stored`, if not null, gets the identity that the commit keeps.
std::optional<std::int64_t> load_checkpoint(RankEngine& engine, const std::string& path,
                                            const nlohmann::json& identity,
                                            nlohmann::json* stored = nullptr);

/// For commands that need one: as above without an identity; no commit is an error.
std::int64_t require_checkpoint(RankEngine& engine, const std::string& path,
                                nlohmann::json* kept = nullptr);

}  // namespace concertina
