// A rank's work for a save that runs during its steps, and the agreement of all ranks on the
// outcome: a single commit rule for all tiers (disk, memory, another host). Invariants: a task's
// thread never communicates; its failure is stored, never thrown; ranks agree through one number
// each, which they exchange after each step anyway.
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

  /// Runs `task`; `concurrent`: on its own thread, unless the thread limit is reached. `where`: the
  /// place to name for a failure that is not an Error. `beat`: called on the waiting thread each
  /// time that the task has made progress.
  void start(const std::function<void()>& task, bool concurrent, const std::string& where,
             std::function<void()> beat = {});
  /// Whether the last task has finished; true if there was none.
  bool over() const { return over_.load(std::memory_order_acquire); }
  /// The failure of the task, once over().
  const std::optional<Error>& error() const { return error_; }
  /// Waits until the task has finished.
  void wait();
  /// Called by the task when it has made progress.
  void made_progress();

 private:
  std::optional<Error> error_;
  std::function<void()> beat_;
  bool concurrent_ = false;
  std::atomic<std::int64_t> beats_ = 0;
  std::atomic<bool> over_ = true;
  std::thread thread_;
};

/// The stages of a save: each rank writes its part; then one rank or all of them combine the parts
/// into one state. A rank sends 0 until it has finished its part of the stage, then any positive
/// number, or a negative one if it failed.
class SaveStages {
 public:
  enum class Stage { idle, writing, committing, failed };

  Stage now() const { return stage_; }
  bool busy() const { return stage_ != Stage::idle; }
  void begin() { stage_ = Stage::writing; }
  void end() { stage_ = Stage::idle; }
  /// `reports`: the numbers of the ranks that participate in the stage. Returns whether the stage
  /// has finished; if so, now() returns the next stage.
  bool hear(std::span<const double> reports);

 private:
  Stage stage_ = Stage::idle;
};

}  // namespace concertina
