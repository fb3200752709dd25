// Commits: which checkpoints a run has, and how one comes to be.
// Invariant: a directory step-NNNNNNNN appears complete and durable, by one rename after the
// manifest, or not at all; whatever dies or fails before, the commits that were there stay.
//
//   begin_checkpoint -> write_shard on every rank -> write_manifest on one -> prune
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

/// Puts commits back that a killed process was about to replace, where nothing had taken their
/// place yet. One process only, before it looks for commits to go on from.
void recover_commits(const std::string& checkpoints);

/// Makes the directory step-NNNNNNNN.partial to write shards into and returns it; clears what
/// earlier attempts left. One process only.
std::string begin_checkpoint(const std::string& checkpoints, std::int64_t step);

/// The commit: verifies that the shards are there and cover every tensor once, writes model.h5 and
/// the manifest, renames `partial`, and returns the final path. Replaces a commit of the same step.
/// One process only, after all shards are written.
std::string write_manifest(const std::string& partial, std::vector<ShardRecord> shards,
                           nlohmann::json metadata);

/// Removes `partial` after a failure on any rank.
void abandon_checkpoint(const std::string& partial);

/// The step that the name of the directory `path` says; nothing if it is no name of a commit.
std::optional<std::int64_t> named_step(const std::string& path);
/// The name of a commit's directory.
std::string commit_name(std::int64_t step);
/// The directory that begin_checkpoint() makes.
std::string partial_path(const std::string& checkpoints, std::int64_t step);

/// Ascending by step; none if the directory does not exist. Their content is not looked at. Commits
/// of other users (is_own()) are left out with a warning.
std::vector<Commit> list_commits(const std::string& checkpoints);
std::optional<Commit> newest_commit(const std::string& checkpoints);

/// Removes the oldest commits until the newest `keep` >= 1 are left, and that of step `kept`.
void prune(const std::string& checkpoints, std::size_t keep, std::int64_t kept = -1);

}  // namespace concertina
