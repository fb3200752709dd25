// What a rank does for a save beside the steps of its run, and how all ranks agree on what came of
// it: the one commit rule of all tiers (disk, memory, another host).
// Invariants: the thread of a task never communicates; its failure is kept, never thrown; ranks
// agree by a number each, which they exchange after each step anyway.
#pragma once

#include <atomic>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <thread>

#include "core/error.h"

namespace concertina {

class BackgroundTask {
 public:
  BackgroundTask() = default;
  ~BackgroundTask() { wait(); }
  BackgroundTask(const BackgroundTask&) = delete;
  BackgroundTask& operator=(const BackgroundTask&) = delete;

  /// Runs `task`: on a thread if `beside`, unless this user may not have another one. `where`: for
  /// a failure that is no Error. `beat`: called on this thread whenever the task has made progress
  /// while it is waited for.
  void start(const std::function<void()>& task, bool beside, const std::string& where,
             std::function<void()> beat = {});
  /// Whether the last task has ended; also before the first one.
  bool over() const { return over_.load(std::memory_order_acquire); }
  /// The failure of the task, once it is over.
  const std::optional<Error>& error() const { return error_; }
  /// Waits until it is over.
  void wait();
  /// For the task: it has made progress.
  void made_progress();

 private:
  std::optional<Error> error_;
  std::function<void()> beat_;
  bool beside_ = false;
  std::atomic<std::int64_t> beats_ = 0;
  std::atomic<bool> over_ = true;
  std::thread thread_;
};

/// The stages of a save: each rank writes its part; then what makes the parts one state is done,
/// by one rank or by all. What a rank tells the others is 0 until it has done its part of the
/// stage, negative where that failed, else any positive number.
class SaveStages {
 public:
  enum class Stage { idle, writing, committing, failed };

  Stage now() const { return stage_; }
  bool busy() const { return stage_ != Stage::idle; }
  void begin() { stage_ = Stage::writing; }
  void end() { stage_ = Stage::idle; }
  /// `told`: by the ranks that have a part in the stage. Whether it has ended; if it has, now() is
  /// what follows.
  bool hear(std::span<const double> told);

 private:
  Stage stage_ = Stage::idle;
};

}  // namespace concertina
