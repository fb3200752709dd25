// Writes the checkpoints of a run, synchronously or during the steps that follow. Invariants: a
// commit is the state after one step, whatever the run does meanwhile (if steps continue, a copy is
// written). All ranks agree on the outcome through values that they exchange anyway. The threads
// that write never communicate, and nothing else in this process uses HDF5 while one of them runs.
//
//   start: copy -> a thread of each rank: its shard -> hear: all exist -> a thread of one rank:
//   the commit, and the work that follows it -> hear: the commit exists
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

/// A finished commit. All ranks that receive one receive the same step and seconds.
struct SavedCheckpoint {
  std::int64_t step = 0;
  double seconds = 0;     // from its start until it was durable
  bool followed = false;  // see After
};

class CheckpointWriter {
 public:
  /// `directory`: contains the commits; all ranks see it. `trainer` has started and outlives this.
  CheckpointWriter(Trainer& trainer, std::string directory)
      : trainer_(trainer), directory_(std::move(directory)) {}

  /// What the rank that commits does next. `followed`: whether a step has followed the saved one.
  using After = std::function<void(bool followed)>;

  /// Starts to write the state after step `step`. `concurrent`: returns once there is a copy of it;
  /// if there is no memory for a copy, logs a warning and waits. Must not be called while busy().
  /// Collective; throws the same Error on all ranks if the state has diverged or the file system
  /// fails (see its system_error()).
  void start(std::int64_t step, const nlohmann::json& identity, nlohmann::json progress,
             bool concurrent, After after = {});

  /// Whether a save is in progress; the same on all ranks.
  bool busy() const { return stages_.busy(); }
  /// The value that the other ranks pass to hear(); 0 while this rank writes.
  double news() const;
  /// `news`: news() of all working ranks, in their order; `followed`: see After. Returns the commit
  /// once it exists. Like start(), throws the error of any rank. Called by all ranks together; the
  /// working ranks must not change while busy().
  std::optional<SavedCheckpoint> hear(std::span<const double> news, bool followed);
  /// Waits for the save in progress, and returns the same as hear(). Collective.
  std::optional<SavedCheckpoint> finish();
  /// The same for the working ranks only; never throws. Returns nullopt if there is no commit.
  std::optional<SavedCheckpoint> finish_working() noexcept;

  /// Bytes that this process uses for copies of the state.
  std::size_t copy_bytes() const { return copy_floats_ * sizeof(float); }

 private:
  using Exchange = std::function<std::vector<double>(std::span<const double>)>;

  bool make_copy_room();
  std::vector<TensorPiece> pieces_of_state(bool copied);
  void work(void (CheckpointWriter::*task)());
  void write_part();
  void commit();
  void collect_records(std::span<const double> news);
  std::optional<SavedCheckpoint> step_on(std::span<const double> news, bool followed);
  std::optional<SavedCheckpoint> step_to_end(const Exchange& exchange);
  void raise();
  bool commits() const { return index_ == 0; }

  Trainer& trainer_;
  const std::string directory_;
  std::unique_ptr<float[]> copy_;
  std::size_t copy_floats_ = 0;
  bool reported_no_room_ = false;

  // These belong to the save in progress.
  SaveStages stages_;
  std::int64_t step_ = 0;
  int index_ = -1;  // index of this rank among the working ranks; -1: none
  bool concurrent_ = false, followed_ = false;
  double began_ = 0;
  std::string partial_;
  nlohmann::json metadata_;
  After after_;
  std::vector<TensorPiece> pieces_;
  std::list<std::vector<std::byte>> fetched_;  // tensors that host code cannot read in place
  std::vector<std::string> records_;  // JSON of this rank's shard, or of all shards to commit
  // These belong to the task until it has finished.
  ShardStructure structure_;
  double durable_ = 0;
  BackgroundTask task_;
};

/// Writes the state after step `step` below `directory` and commits it with the number of frozen
/// units and `progress`. Throws like CheckpointWriter::start(). Collective.
void save_checkpoint(Trainer& trainer, const std::string& directory, std::int64_t step,
                     const nlohmann::json& identity, nlohmann::json progress = {});

/// Calls SnapshotFile::copy() for this rank's part of the state. Not collective.
double copy_snapshot(const Trainer& trainer, SnapshotFile& file, const SnapshotOf& of,
                     const nlohmann::json& identity, nlohmann::json progress);

/// The number of bytes to reserve for a checkpoint written by all ranks in the current assignment.
std::uint64_t checkpoint_bytes(const Trainer& trainer);

/// The number of bytes of weights and optimizer state that each rank writes, without file overhead;
/// `kinds`: number of tensors per weight, not counting the weight itself.
std::vector<std::uint64_t> state_bytes(const Assignment& assignment, std::size_t kinds);

}  // namespace concertina
