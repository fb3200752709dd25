#include "parallel/comm/watchdog.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "core/log.h"

namespace concertina {

Watchdog::Watchdog(int rank, Seconds limit, OnHang on_hang)
    : rank_(rank), limit_(limit), on_hang_(std::move(on_hang)) {
  if (limit_.count() > 0) thread_ = std::thread([this] { watch(); });
}

Watchdog::~Watchdog() {
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
  add("peer rank", peer_.load(std::memory_order_relaxed));
  return text;
}

void Watchdog::watch() {
  using Clock = std::chrono::steady_clock;
  const Seconds period = limit_ / 8;
  unsigned seen = beats_.load(std::memory_order_acquire);
  Seconds silent{0};
  bool reported = false;
  Clock::time_point last = Clock::now();
  std::unique_lock lock(mutex_);
  while (!wake_.wait_for(lock, period, [this] { return stop_; })) {
    const Clock::time_point now = Clock::now();
    // A tick that comes much too late means that the whole process was stopped.
    silent += std::min<Seconds>(now - std::exchange(last, now), 2 * period);
    const unsigned beats = beats_.load(std::memory_order_acquire);
    if (beats != std::exchange(seen, beats)) {
      silent = Seconds{0};
      reported = false;
    } else if (silent >= limit_ && !reported) {
      reported = true;
      const std::string text = report(silent);
      log::error("{}", text);
      lock.unlock();
      on_hang_(text);
      lock.lock();
    }
  }
}

}  // namespace concertina
