#include "parallel/comm/watchdog.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/log.h"

namespace concertina {

Watchdog::Watchdog(int rank, Seconds limit, OnHang on_hang)
    : rank_(rank), limit_(limit), on_hang_(std::move(on_hang)), before_(observe_waits(this)) {
  if (limit_.count() > 0) thread_ = std::thread([this] { watch(); });
}

Watchdog::~Watchdog() {
  observe_waits(before_);
  if (!thread_.joinable()) return;
  {
    const std::lock_guard lock(mutex_);
    stop_ = true;
  }
  wake_.notify_one();
  thread_.join();
}

void Watchdog::at(const char* what, int stage, int microbatch, int peer) noexcept {
  what_.store(what, std::memory_order_relaxed);
  stage_.store(stage, std::memory_order_relaxed);
  microbatch_.store(microbatch, std::memory_order_relaxed);
  peer_.store(peer, std::memory_order_relaxed);
  beat();
}

std::string Watchdog::report(Seconds silent) const {
  std::string text = fmt::format("rank {}: no progress for {:.3g} s: {}", rank_, silent.count(),
                                 what_.load(std::memory_order_relaxed));
  const auto add = [&](const char* name, int value) {
    if (value >= 0) text += fmt::format(", {} {}", name, value);
  };
  add("stage", stage_.load(std::memory_order_relaxed));
  add("microbatch", microbatch_.load(std::memory_order_relaxed));
  add("waits for rank", peer_.load(std::memory_order_relaxed));
  return text;
}

Watchdog::Patience::Patience(Watchdog* watchdog, const char* what) noexcept : watchdog_(watchdog) {
  if (watchdog_ == nullptr) return;
  watchdog_->patience_.fetch_add(1, std::memory_order_relaxed);
  watchdog_->at(what);
}

Watchdog::Patience::~Patience() {
  if (watchdog_ == nullptr) return;
  watchdog_->beat();
  watchdog_->patience_.fetch_sub(1, std::memory_order_release);
}

void Watchdog::watch() {
  using Clock = std::chrono::steady_clock;
  const Seconds period = std::max<Seconds>(limit_ / 8, std::chrono::milliseconds(1)),
                grace = limit_ / 4;
  unsigned seen = beats_.load(std::memory_order_acquire);
  Seconds silent{0}, next_report = limit_;
  bool told = false;
  Clock::time_point last = Clock::now();
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, period, [this] { return stop_; })) {
    const Clock::time_point now = Clock::now();
    // A tick that comes much too late means that the whole process was stopped.
    silent += std::min<Seconds>(now - std::exchange(last, now), 2 * period);
    const bool patient = patience_.load(std::memory_order_acquire) > 0;
    const unsigned beats = beats_.load(std::memory_order_acquire);
    if (beats != std::exchange(seen, beats)) {
      silent = Seconds{0};
      next_report = limit_;
      told = false;
    } else if (patient && silent >= next_report) {
      next_report = 2 * silent;
      log::warn("{} (goes on: this is not ended)", report(silent));
    } else if (!patient && silent >= limit_ && next_report == limit_) {
      next_report = 2 * limit_;
      log::error("{}", report(silent));
    } else if (!patient && silent >= limit_ + grace && !told) {
      told = true;
      lock.unlock();
      on_hang_(report(silent));
      lock.lock();
    }
  }
}

}  // namespace concertina
