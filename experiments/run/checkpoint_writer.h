// Writes the checkpoints of a run, in the way of its steps or beside those that follow.
// Invariants: a commit is of one step, whatever the run does while it is written: what is written
// beside steps is a copy; all ranks agree on what came of it, by what they exchange anyway; the
// threads that write never communicate, and nothing else of this process uses HDF5 while one runs.
//
//   start: copy -> a thread of each rank: its shard -> hear: all have it -> a thread of one rank:
//   the commit, and what is to be done after it -> hear: it is there
#pragma once

#include <cstdint>
#include <functional>
#include <list>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "experiments/run/background_task.h"
#include "experiments/run/trainer.h"
#include "io/checkpoint/checkpoint_shard.h"
#include "io/checkpoint/snapshot_file.h"

namespace concertina {

/// A commit that is there. All ranks that get one get the same step and seconds.
struct SavedCheckpoint {
  std::int64_t step = 0;
  double seconds = 0;   // from its start until it was durable
  bool led_on = false;  // as After was told
};

class CheckpointWriter {
 public:
  /// `directory`: of the commits, which all ranks see. `trainer` has started, and outlives it.
  CheckpointWriter(Trainer& trainer, std::string directory)
      : trainer_(trainer), directory_(std::move(directory)) {}

  /// What the rank that commits does next, maybe on a thread. `led_on`: a step has followed that of
  /// the state.
  using After = std::function<void(bool led_on)>;

  /// Begins to write the state after step `step`. `beside`: returns as soon as there is a copy of
  /// it, unless there is no memory for one, which is a warning. Not while busy(). Collective;
  /// throws the same Error on all ranks: of a state that has diverged, or its system_error() says
  /// that the file system refused.
  void start(std::int64_t step, const nlohmann::json& identity, nlohmann::json progress,
             bool beside, After after = {});

  /// Whether a save has begun and has not ended; the same on all ranks.
  bool busy() const { return stages_.busy(); }
  /// What the other ranks have to hear(): 0 while this one writes.
  double news() const;
  /// `news`: news() of all working ranks, in their order; `led_on`: as After is told. Returns the
  /// commit once it is there. Throws as start() what any rank met. All ranks together. The working
  /// ranks stay the same as long as it is busy().
  std::optional<SavedCheckpoint> hear(std::span<const double> news, bool led_on);
  /// Waits for the end of what start() has begun, and returns it as hear(). Collective.
  std::optional<SavedCheckpoint> finish();
  /// The same among the working ranks alone, which never throws: nothing if there is no commit.
  std::optional<SavedCheckpoint> finish_working() noexcept;

  /// Bytes of this process for copies of the state.
  std::size_t copy_bytes() const { return copy_floats_ * sizeof(float); }

 private:
  using Exchange = std::function<std::vector<double>(std::span<const double>)>;

  bool make_copy_room();
  std::vector<TensorPiece> pieces_of_state(bool copied);
  void work(void (CheckpointWriter::*task)());
  void write_part();
  void commit();
  void collect_records(std::span<const double> news);
  std::optional<SavedCheckpoint> step_on(std::span<const double> news, bool led_on);
  std::optional<SavedCheckpoint> step_to_end(const Exchange& exchange);
  void raise();
  bool commits() const { return index_ == 0; }

  Trainer& trainer_;
  const std::string directory_;
  std::unique_ptr<float[]> copy_;
  std::size_t copy_floats_ = 0;
  bool no_room_told_ = false;

  // These are of the save that is under way.
  SaveStages stages_;
  std::int64_t step_ = 0;
  int index_ = -1;  // of this rank among those that work; -1: it has no part
  bool beside_ = false, led_on_ = false;
  double began_ = 0;
  std::string partial_;
  nlohmann::json metadata_;
  After after_;
  std::vector<TensorPiece> pieces_;
  std::list<std::vector<std::byte>> fetched_;  // what host code cannot read in its place
  std::vector<std::string> records_;           // JSON of shards: the own one, or all to commit
  // These belong to the task until it is over.
  ShardStructure structure_;
  double durable_ = 0;
  BackgroundTask task_;
};

/// Writes step `step` below `directory` and commits it, with what units are frozen and `progress`.
/// Throws as CheckpointWriter::start(). Collective.
void save_checkpoint(Trainer& trainer, const std::string& directory, std::int64_t step,
                     const nlohmann::json& identity, nlohmann::json progress = {});

/// SnapshotFile::copy() of this rank's part of the state. Not collective.
double copy_snapshot(const Trainer& trainer, SnapshotFile& file, const SnapshotOf& of,
                     const nlohmann::json& identity, nlohmann::json progress);

/// At least the bytes of a checkpoint of all ranks in the assignment of now.
std::uint64_t checkpoint_bytes(const Trainer& trainer);

/// At least the bytes of weights and optimizer state that each rank writes; of so many kinds
/// besides weights.
std::vector<std::uint64_t> state_bytes(const Assignment& assignment, std::size_t kinds);

}  // namespace concertina
