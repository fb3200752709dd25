// Commits: listing the checkpoints of a run and creating new ones. Invariant: a directory
// step-NNNNNNNN appears complete and durable, through a single rename after its manifest is
// written, or not at all. A crash or failure before that leaves earlier commits intact.
//
//   begin_checkpoint -> write_shard on every rank -> write_manifest on one rank -> prune
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint_format.h"

namespace concertina {

struct Commit {
  std::int64_t step = 0;
  std::string path;
};

/// Restores commits that a killed process was about to replace, unless the replacement exists. Call
/// it in one process only, before looking for commits to resume from.
void recover_commits(const std::string& checkpoints);

/// Creates the directory step-NNNNNNNN.partial for shards, removes the remains of earlier attempts,
/// and returns its path. Call it in one process only.
std::string begin_checkpoint(const std::string& checkpoints, std::int64_t step);

/// Commits: verifies that the shards exist and cover every tensor once, writes model.h5 and the
/// manifest, renames `partial`, and returns the final path. Replaces a commit of the same step.
/// Call it in one process only, after all shards are written.
std::string write_manifest(const std::string& partial, std::vector<ShardRecord> shards,
                           nlohmann::json metadata);

/// Removes `partial` after a failure on any rank.
void abandon_checkpoint(const std::string& partial);

/// Returns the step in the name of the directory `path`, or nothing if it is not a commit's name.
std::optional<std::int64_t> named_step(const std::string& path);
/// Returns the name of a commit's directory.
std::string commit_name(std::int64_t step);
/// Returns the path of the directory that begin_checkpoint() creates.
std::string partial_path(const std::string& checkpoints, std::int64_t step);

/// Returns the commits in ascending order of step, without checking their content; empty if the
/// directory does not exist. Skips commits of other users (is_own()) with a warning.
std::vector<Commit> list_commits(const std::string& checkpoints);
std::optional<Commit> newest_commit(const std::string& checkpoints);

/// Removes all commits except the newest `keep` (at least 1) and the commit of step `kept`.
void prune(const std::string& checkpoints, std::size_t keep, std::int64_t kept = -1);

}  // namespace concertina
