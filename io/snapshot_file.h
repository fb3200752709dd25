// A rank's part of the state of a run, in memory that outlives its process: files in /dev/shm.
// Invariants: of two generations one is whole at any moment, once the first is; a file has its name
// only when all of it is there and hashed; what is read is what was written, or an input error.
// It is no checkpoint: it goes with the machine, and counts only where all ranks' parts are on this
// host.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "io/checkpoint_reader.h"

namespace concertina {

/// The beginning of the names of the snapshots of the run in `directory`; empty if that has no
/// run.id.
std::string snapshot_prefix(const std::string& directory);

/// Says which launch, rank and step a part is of.
struct SnapshotOf {
  std::uint64_t launch = 0;  // a number that no other launch has
  int rank = 0, world = 1;
  std::int64_t step = 0;
};

class SnapshotFile {
 public:
  SnapshotFile(std::string prefix, int rank);
  ~SnapshotFile();
  SnapshotFile(const SnapshotFile&) = delete;
  SnapshotFile& operator=(const SnapshotFile&) = delete;

  /// Copies the pieces before it returns; a thread hashes them and gives the file its name. Waits
  /// for the snapshot before. Throws a failure where there is no room.
  void write(const SnapshotOf& of, const nlohmann::json& metadata,
             std::span<const TensorPiece> pieces);
  /// Waits for the thread.
  void finish();
  /// Seconds that the last whole snapshot took, copy and hash; 0 without one.
  double seconds() const { return copy_seconds_ + hash_seconds_.load(); }

 private:
  /// A generation: its file, mapped.
  struct Slot {
    std::string path;
    std::byte* data = nullptr;
    std::uint64_t bytes = 0;
  };
  void make_room(Slot& slot, std::uint64_t bytes) const;
  void release(Slot& slot) const;

  std::array<Slot, 2> slots_;
  std::size_t next_ = 0;
  std::thread thread_;
  double copy_seconds_ = 0;
  std::atomic<double> hash_seconds_ = 0;
};

/// The newest step of which this host has the parts of all ranks, as a commit that CheckpointReader
/// reads; none if there is none.
std::optional<OpenCommit> open_newest_snapshot(const std::string& prefix);

/// Removes all snapshots of a run on this host.
void remove_snapshots(const std::string& prefix);

}  // namespace concertina
