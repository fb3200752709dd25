// A rank's part of the state of a run, in memory that outlives its process: files in /dev/shm.
// Invariants: of two generations one is whole at any moment, once the first is; a file has its name
// only when all of it is there and hashed; what is read is what a process with the run's key wrote,
// and everything else is skipped with one warning. Anybody may make files of these names: those of
// other users are not read. It is no checkpoint: it goes with the machine. Other hosts may keep
// copies of its files.
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

/// A run, as its snapshots know it.
struct SnapshotRun {
  std::string prefix{};     // of the names of its files; empty: the run has no run.id
  std::string key{};        // of run.key; empty: no snapshot is believed
  std::string directory{};  // absolute
};
SnapshotRun snapshot_run(const std::string& directory);
/// The prefix alone.
std::string snapshot_prefix(const std::string& directory);

/// Says which launch, rank and step a part is of.
struct SnapshotOf {
  std::uint64_t launch = 0;  // a number that no other launch has
  int rank = 0, world = 1;
  std::int64_t step = 0;
  auto operator<=>(const SnapshotOf&) const = default;
};

/// The file of a generation, 0 or 1, of a rank's part.
std::string snapshot_path(const std::string& prefix, int rank, std::size_t generation);

/// A file of a snapshot, mapped: one generation of a rank's part, written here or copied from
/// another host.
class SnapshotSlot {
 public:
  explicit SnapshotSlot(std::string path) : path_(std::move(path)) {}
  ~SnapshotSlot() { release(); }
  SnapshotSlot(const SnapshotSlot&) = delete;
  SnapshotSlot& operator=(const SnapshotSlot&) = delete;

  /// Takes the name away from what is there, and makes room for exactly so many bytes. Throws a
  /// failure where there is no room.
  void open(std::uint64_t bytes);
  /// Gives the file its name: all of it is there. Warns where another user has taken the name.
  void publish() const;

  const std::string& path() const { return path_; }
  std::span<std::byte> bytes() const { return {data_, bytes_}; }

 private:
  void release();

  const std::string path_;
  std::byte* data_ = nullptr;
  std::uint64_t bytes_ = 0;
};

/// A rank's part as its file describes it.
struct SnapshotPart {
  SnapshotOf of;
  nlohmann::json metadata;
  ShardRecord shard;  // `bytes` are those of the file
  std::string file;   // its name
};
nlohmann::json to_json(const SnapshotPart& part);
SnapshotPart parse_snapshot_part(const nlohmann::json& json);

/// Two generations of a rank's part.
class SnapshotFile {
 public:
  SnapshotFile(SnapshotRun run, int rank);

  /// Copies the pieces in place of the older generation, and returns the seconds of the copy.
  /// Throws a failure where there is no room.
  double copy(const SnapshotOf& of, const nlohmann::json& metadata,
              std::span<const TensorPiece> pieces);
  /// Hashes the last copy and gives the file its name; on any thread. Returns the seconds of that.
  double seal();

  /// The generation of the last copy, 0 or 1, and its file; there is one.
  std::size_t generation() const { return 1 - next_; }
  std::span<const std::byte> last() const { return slots_[generation()].bytes(); }

 private:
  const SnapshotRun run_;
  std::array<SnapshotSlot, 2> slots_;
  std::size_t next_ = 0;
  SnapshotPart part_;  // the last copy
};

/// The parts of a run on this host. Files that are damaged in what they say of themselves, of
/// another key or of another user are skipped, with one warning for each.
std::vector<SnapshotPart> snapshot_parts(const SnapshotRun& run);

/// A snapshot of which there are the parts of all ranks: a commit that CheckpointReader reads, one
/// shard per rank.
struct WholeSnapshot {
  std::uint64_t launch = 0;  // SnapshotOf::launch
  OpenCommit commit;
};
/// The one of the newest step among these parts; none if there is none.
std::optional<WholeSnapshot> newest_whole(std::vector<SnapshotPart> parts);

/// The newest step of which this host has a part, whatever others have; 0 if there is none.
std::int64_t newest_snapshot_part(const SnapshotRun& run);

/// Removes all snapshots of a run on this host.
void remove_snapshots(const std::string& prefix);

/// The snapshots of a run of this user, and the directory that they say it has, which nothing
/// vouches for; empty: none says so.
struct SnapshotSet {
  std::string directory;
  std::uint64_t bytes = 0;
};
/// Those of all runs on this host, by prefix.
std::map<std::string, SnapshotSet> own_snapshot_sets();

}  // namespace concertina
