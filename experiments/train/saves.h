// The checkpoints of a launch: what is said of them, which stay, and the room of the next.
// Invariants: older ones go once a step has followed the newest; a checkpoint that the file system
// refuses ends no run, unless it is the last of the launch; all ranks know the same.
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
  /// `launch` is open and outlives this.
  explicit Saves(TrainLaunch& launch);

  /// Begins the checkpoint of the state after `step`, beside the steps that follow. `wait`: it is
  /// there on return. `last`: of this launch, so that it has to succeed. `progress`: as it is once
  /// the checkpoint before it has ended. `changed`: the data may have been changed since the run
  /// began, which is else an error. Collective, as all below.
  void save(std::int64_t step, const std::function<nlohmann::json()>& progress, bool last,
            bool wait, bool changed = false);
  /// What the other ranks have to hear after a step.
  double news() const { return writer_.news(); }
  /// A step has ended. `news`: of all working ranks, in their order. `finite`: so are its numbers;
  /// else it says nothing of the newest checkpoint.
  void after_step(std::span<const double> news, bool finite);
  /// Waits for the checkpoint that is being written, if there is one.
  void finish();
  /// The same where all working ranks, and maybe no others, have found that the state has diverged
  /// since.
  void finish_diverged();
  /// The assignment is another one.
  void changed();
  /// Removes older commits, if the newest has led to nothing wrong.
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
  void tell_of_waiting();
  void keep_room();
  void hold_room();
  void tell_of_room();
  template <class... Values>
  void warn(fmt::format_string<Values...> text, Values&&... values);

  TrainLaunch& launch_;
  CheckpointWriter writer_;
  std::int64_t step_ = 0;  // of the checkpoint that was begun last
  double stalled_ = 0;     // seconds that steps waited for it
  double waited_ = 0;      // seconds that checkpoints waited for the ones before them
  double seconds_ = 0;
  bool told_waiting_ = false;
  bool unpruned_ = true;    // the newest checkpoint has not led to anything yet
  bool lacks_room_ = true;  // for the next checkpoint
  // These belong to the thread that commits while the writer is busy.
  std::uint64_t room_bytes_ = 0;  // 0: not known
  File room_;                     // what holds them
  std::optional<Error> no_room_;
};

}  // namespace concertina
