#include "experiments/train/saves.h"

#include <fmt/format.h>

#include <cerrno>
#include <utility>

#include "core/clock.h"
#include "core/log.h"
#include "experiments/run/run_checkpoint.h"
#include "experiments/run/run_identity.h"
#include "experiments/run/text_identity.h"

namespace concertina {

Saves::Saves(TrainLaunch& launch) : launch_(launch), writer_(launch.trainer, launch.checkpoints) {}

void Saves::save(std::int64_t step, const std::function<nlohmann::json()>& progress, bool last,
                 bool wait, bool changed) {
  if (writer_.busy()) {
    const double start = now();
    finish();
    waited_ += now() - start;
    report_waiting();
  }
  step_ = step;
  stalled_ = 0;
  room_ = File();
  settle(
      [&]() -> std::optional<SavedCheckpoint> {
        if (!changed)
          require_same_text(launch_.world, launch_.dataset->corpus(),
                            launch_.own_identity.at(kWholeText).get<std::string>(),
                            launch_.text_stamps);
        writer_.start(step, launch_.own_identity, progress(), !wait, after_commit());
        return wait ? writer_.finish() : std::nullopt;
      },
      last);
}

void Saves::after_step(std::span<const double> news, bool finite) {
  if (writer_.busy()) settle([&] { return writer_.hear(news, finite); }, false);
  if (finite) prune();
  keep_room();
}

void Saves::finish() {
  if (writer_.busy()) settle([this] { return writer_.finish(); }, false);
}

void Saves::finish_diverged() {
  if (writer_.busy()) settle([this] { return writer_.finish_working(); }, false);
}

void Saves::changed() {
  lacks_room_ = true;
}

void Saves::settle(const Result& result, bool last) {
  const double start = now();
  std::optional<SavedCheckpoint> saved;
  try {
    saved = result();
  } catch (const Error& error) {
    if (error.system_error() == 0) throw;
    if (!last) return refused(error);
    throw Error(error.code(),
                fmt::format("the weights after step {} are not saved: {}", step_, error.message()),
                error.where(), error.fix(), error.system_error());
  }
  stalled_ += now() - start;
  seconds_ += now() - start;
  if (saved) committed(*saved);
}

void Saves::refused(const Error& error) {
  lacks_room_ = true;
  if (launch_.selection.wants(step_)) launch_.selection.lost();
  if (!launch_.monitor) return;
  if (++unsaved_ == 1)
    warn(
        "cannot write the checkpoint of step {}: {} ({}); training continues, and the next message "
        "follows once a checkpoint is written",
        step_, error.message(), error.where());
  launch_.monitor->event(step_, EventKind::no_checkpoint, {{"why", error.message()}});
}

void Saves::committed(const SavedCheckpoint& saved) {
  launch_.launch_watch.committed(saved.step);
  if (!saved.followed) unpruned_ = lacks_room_ = true;
  if (const int unsaved = std::exchange(unsaved_, 0); unsaved > 0)
    warn("the checkpoint of step {} is written; failed before it: {}", saved.step, unsaved);
  if (launch_.monitor)
    launch_.monitor->event(saved.step, EventKind::checkpoint,
                           {{"seconds", stalled_}, {"durable_s", saved.seconds}});
  report_low_room();
}

std::int64_t Saves::best() const {
  const Selection& selection = launch_.selection;
  return selection.keeps() && selection.best() ? selection.best()->step : -1;
}

/// The work after a commit: none until a step after the commit has had a finite loss.
CheckpointWriter::After Saves::after_commit() {
  if (lacks_room_ || room_bytes_ == 0) room_bytes_ = checkpoint_bytes(launch_.trainer);
  lacks_room_ = false;
  return [this, best = best()](bool followed) {
    if (!followed) return;
    prune_checkpoints(launch_.checkpoints, launch_.config.checkpoint.keep, best);
    hold_room();
  };
}

void Saves::prune() {
  if (writer_.busy() || !std::exchange(unpruned_, false) || !launch_.leads()) return;
  prune_checkpoints(launch_.checkpoints, launch_.config.checkpoint.keep, best());
}

/// Reserves space for the next checkpoint, since logs of a long run or other programs may fill the
/// disk. Uses no more space than a save, which keeps the older checkpoints next to the new one.
void Saves::keep_room() {
  if (writer_.busy() || !std::exchange(lacks_room_, false) || !launch_.leads()) return;
  room_bytes_ = checkpoint_bytes(launch_.trainer);
  hold_room();
  report_low_room();
}

void Saves::hold_room() {
  try {
    room_ = File();
    room_ = reserve_room(launch_.checkpoints, room_bytes_);
  } catch (const Error& error) {
    if (error.system_error() == ENOSPC || error.system_error() == EDQUOT) no_room_ = error;
  }
}

template <class... Values>
void Saves::warn(fmt::format_string<Values...> text, Values&&... values) {
  if (launch_.monitor) launch_.monitor->clear();
  log::warn(text, std::forward<Values>(values)...);
}

void Saves::report_low_room() {
  const std::optional<Error> error = std::exchange(no_room_, std::nullopt);
  if (error && !std::exchange(reported_room_, true))
    warn("no space for the next checkpoint (up to {:.1f} MiB): {} ({})",
         static_cast<double>(room_bytes_) / (1 << 20), error->message(), launch_.checkpoints);
}

void Saves::report_waiting() {
  constexpr double kMuchSeconds = 1, kMuch = 0.05;
  if (!launch_.monitor || reported_waiting_ || waited_ < kMuchSeconds ||
      waited_ < kMuch * (now() - launch_.started))
    return;
  reported_waiting_ = true;
  warn(
      "steps have waited {:.1f} s for checkpoints that were due before the previous ones were "
      "written; this storage needs a checkpoint.every larger than {}",
      waited_, launch_.config.checkpoint.every);
}

}  // namespace concertina
