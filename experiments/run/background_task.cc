#include "experiments/run/background_task.h"

#include <algorithm>
#include <chrono>
#include <system_error>
#include <utility>

namespace concertina {

void BackgroundTask::start(const std::function<void()>& task, bool concurrent,
                           const std::string& where, std::function<void()> beat) {
  wait();
  error_.reset();
  beat_ = std::move(beat);
  const auto guarded = [this, task, where] {
    try {
      task();
    } catch (const Error& error) {
      error_ = error;
    } catch (const std::exception& failure) {
      error_ = Error(Exit::failure, failure.what(), where, {});
    }
    over_.store(true, std::memory_order_release);
  };
  over_ = false;
  concurrent_ = concurrent;
  try {
    if (concurrent) thread_ = std::thread(guarded);
  } catch (const std::system_error&) {  // thread limit of this user reached: run it synchronously
    concurrent_ = false;
  }
  if (!concurrent_) guarded();
}

void BackgroundTask::wait() {
  for (std::int64_t seen = 0; !over();) {
    std::this_thread::sleep_for(std::chrono::microseconds(200));
    if (std::exchange(seen, beats_.load()) != seen && beat_) beat_();
  }
  if (thread_.joinable()) thread_.join();
}

void BackgroundTask::made_progress() {
  if (concurrent_)
    ++beats_;
  else if (beat_)
    beat_();
}

bool SaveStages::hear(std::span<const double> reports) {
  if (!busy() || std::ranges::find(reports, 0.0) != reports.end()) return false;
  if (std::ranges::any_of(reports, [](double one) { return one < 0; }))
    stage_ = Stage::failed;
  else
    stage_ = stage_ == Stage::writing ? Stage::committing : Stage::idle;
  return true;
}

}  // namespace concertina
