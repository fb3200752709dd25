// The checkpoints of a launch: logs them, removes old ones, and reserves space for the next.
// Invariants: older checkpoints are removed once a step has followed the newest; a checkpoint that
// the file system refuses does not end the run, unless it is the last of the launch; all ranks have
// the same information.
#pragma once

#include <fmt/format.h>

#include <functional>
#include <optional>
#include <span>

#include "experiments/run/checkpoint_writer.h"
#include "experiments/train/train_launch.h"
#include "io/file.h"

namespace concertina {

class Saves {
 public:
  /// `launch` is open and outlives this object.
  explicit Saves(TrainLaunch& launch);

  /// Starts the checkpoint of the state after `step`, written during the steps that follow. `wait`:
  /// returns only when it exists. `last`: the last checkpoint of this launch, which must succeed.
  /// `progress`: called once the previous checkpoint has finished. `changed`: the data may have
  /// changed since the start of the run, which is otherwise an error. Collective, like all below.
  void save(std::int64_t step, const std::function<nlohmann::json()>& progress, bool last,
            bool wait, bool changed = false);
  /// The value to pass to the other ranks after a step.
  double news() const { return writer_.news(); }
  /// Called after a step. `news`: the values of all working ranks, in their order. `finite`:
  /// whether the step's numbers are finite; otherwise it does not confirm the newest checkpoint.
  void after_step(std::span<const double> news, bool finite);
  /// Waits for the checkpoint that is being written, if any.
  void finish();
  /// The same if all working ranks, but possibly no others, know that the state has diverged.
  void finish_diverged();
  /// Called after the assignment has changed.
  void changed();
  /// Removes older commits if the newest has been confirmed.
  void prune();

  /// Seconds that steps have waited for checkpoints.
  double seconds() const { return seconds_; }

 private:
  using Result = std::function<std::optional<SavedCheckpoint>()>;
  void settle(const Result& result, bool last);
  void refused(const Error& error);
  void committed(const SavedCheckpoint& saved);
  std::int64_t best() const;
  CheckpointWriter::After after_commit();
  void report_waiting();
  void keep_room();
  void hold_room();
  void report_low_room();
  template <class... Values>
  void warn(fmt::format_string<Values...> text, Values&&... values);

  TrainLaunch& launch_;
  CheckpointWriter writer_;
  std::int64_t step_ = 0;  // of the checkpoint started last
  double stalled_ = 0;     // seconds that steps waited for it
  double waited_ = 0;      // seconds that checkpoints waited for previous ones
  double seconds_ = 0;
  int unsaved_ = 0;  // checkpoints in a row that could not be written; on the rank that reports
  bool reported_waiting_ = false, reported_room_ = false;
  bool unpruned_ = true;    // no step has confirmed the newest checkpoint yet
  bool lacks_room_ = true;  // for the next checkpoint
  // These belong to the thread that commits while the writer is busy.
  std::uint64_t room_bytes_ = 0;  // 0: unknown
  File room_;                     // reserves room_bytes_
  std::optional<Error> no_room_;
};

}  // namespace concertina
