// A rank's part of a run's state, in memory that outlives its process: files in /dev/shm.
// Invariants: once the first snapshot is complete, at least one of two generations always is.
// A file has its final name only after it is complete and hashed. Only data written by a process
// with the run's key is used; other files, including those of other users, are skipped with one
// warning. A snapshot is not a checkpoint: it is lost on reboot. Other hosts may keep copies of its
// files.
#pragma once

#include <array>
#include <compare>
#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/checkpoint/checkpoint_reader.h"

namespace concertina {

/// The properties of a run that its snapshots depend on.
struct SnapshotRun {
  std::string prefix{};     // of the file names; empty if the run has no run.id
  std::string key{};        // content of run.key; empty: no snapshot is trusted
  std::string directory{};  // absolute
};
SnapshotRun snapshot_run(const std::string& directory);
/// Returns only the prefix.
std::string snapshot_prefix(const std::string& directory);

/// The launch, rank and step of a part.
struct SnapshotOf {
  std::uint64_t launch = 0;  // random and unique
  int rank = 0, world = 1;
  std::int64_t step = 0;
  auto operator<=>(const SnapshotOf&) const = default;
};

/// Returns the path of generation 0 or 1 of a rank's part.
std::string snapshot_path(const std::string& prefix, int rank, std::size_t generation);

/// A mapped file of a snapshot: one generation of a rank's part, written here or copied from
/// another host.
class SnapshotSlot {
 public:
  explicit SnapshotSlot(std::string path) : path_(std::move(path)) {}
  ~SnapshotSlot() { release(); }
  SnapshotSlot(const SnapshotSlot&) = delete;
  SnapshotSlot& operator=(const SnapshotSlot&) = delete;

  /// Removes the final name from the existing file, and recreates the file unless its size is
  /// `bytes`. Throws if there is not enough space.
  void open(std::uint64_t bytes);
  /// Gives the complete file its final name. Warns if another user has taken the name.
  void publish() const;

  const std::string& path() const { return path_; }
  std::span<std::byte> bytes() const { return {data_, bytes_}; }

 private:
  void release();

  const std::string path_;
  std::byte* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

/// A rank's part as described in its file.
struct SnapshotPart {
  SnapshotOf of;
  nlohmann::json metadata;
  ShardRecord shard;  // `bytes` is the size of the file
  std::string file;   // its name
};
nlohmann::json to_json(const SnapshotPart& part);
SnapshotPart parse_snapshot_part(const nlohmann::json& json);

/// The two generations of a rank's part.
class SnapshotFile {
 public:
  SnapshotFile(SnapshotRun run, int rank);

  /// Copies the pieces over the older generation and returns the duration in seconds. Throws if
  /// there is not enough space.
  double copy(const SnapshotOf& of, const nlohmann::json& metadata,
              std::span<const TensorPiece> pieces);
  /// Hashes the last copy and publishes the file. Returns the duration in seconds. Any thread may
  /// call it.
  double seal();

  /// Returns the generation, 0 or 1, of the last copy, which must exist.
  std::size_t generation() const { return 1 - next_; }
  std::span<const std::byte> last() const { return slots_[generation()].bytes(); }

 private:
  const SnapshotRun run_;
  std::array<SnapshotSlot, 2> slots_;
  std::size_t next_ = 0;
  SnapshotPart part_;  // of the last copy
};

/// Returns the parts of a run on this host. Files that are damaged, have another key or belong to
/// another user are skipped with one warning each.
std::vector<SnapshotPart> snapshot_parts(const SnapshotRun& run);

/// A snapshot with the parts of all ranks, as a commit with one shard per rank for
/// CheckpointReader.
struct WholeSnapshot {
  std::uint64_t launch = 0;  // SnapshotOf::launch
  OpenCommit commit;
};
/// Returns the newest snapshot for which these parts are complete, if there is one.
std::optional<WholeSnapshot> newest_whole(std::vector<SnapshotPart> parts);

/// Returns the newest step of which this host has any part, or 0.
std::int64_t newest_snapshot_part(const SnapshotRun& run);

/// Removes all snapshots of a run on this host.
void remove_snapshots(const std::string& prefix);

/// The snapshots of one of this user's runs.
struct SnapshotSet {
  std::string directory;  // from an unverified description; empty if there is none
  std::uint64_t bytes = 0;
};
/// Returns the snapshots of all runs on this host, by prefix.
std::map<std::string, SnapshotSet> own_snapshot_sets();

}  // namespace concertina
