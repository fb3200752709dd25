#include "parallel/comm/communicator.h"

#include <sched.h>

#include <algorithm>
#include <chrono>
#include <ctime>
#include <exception>
#include <set>

#include "core/error.h"
#include "core/index.h"
#include "core/log.h"

namespace concertina {
namespace {

using Clock = std::chrono::steady_clock;

thread_local WaitObserver* wait_observer = nullptr;

/// Spins while an answer within microseconds is likely, then yields the core, then sleeps for a
/// fixed fraction of the time waited so far, which bounds the delay added by sleeping.
class Backoff {
 public:
  /// Returns true once the wait is long, which is as soon as it no longer spins: on busy cores,
  /// yielding may take seconds.
  bool pause() {
    ++tests_;
    if (tests_ < kSpins) return false;
    if (tests_ < kYields) {
      ::sched_yield();
      return tests_ == kSpins;
    }
    sleep();
    return true;
  }

 private:
  static constexpr int kSpins = 100, kYields = 300, kShare = 64;
  static constexpr std::chrono::nanoseconds kShortest{10'000}, kLongest{1'000'000};

  void sleep() {
    const Clock::time_point now = Clock::now();
    if (start_ == Clock::time_point{}) start_ = now;
    const auto pause =
        std::clamp<std::chrono::nanoseconds>((now - start_) / kShare, kShortest, kLongest);
    const timespec time{0, static_cast<long>(pause.count())};
    ::nanosleep(&time, nullptr);
  }

  int tests_ = 0;
  Clock::time_point start_{};
};

}  // namespace

Work& Work::operator=(Work&& other) noexcept {
  if (this != &other) {
    const Work old(std::move(*this));
    state_ = std::exchange(other.state_, nullptr);
  }
  return *this;
}

Work::~Work() {
  if (state_ == nullptr) return;
  if (std::uncaught_exceptions() == 0)
    log::error("a transfer was destroyed before it was done: wait() for it (a bug in concertina)");
  state_->recycle();
}

bool Work::test() {
  if (state_ == nullptr) return true;
  bool done = false;
  try {
    done = state_->test();
  } catch (...) {
    std::exchange(state_, nullptr)->recycle();
    throw;
  }
  if (done) std::exchange(state_, nullptr)->recycle();
  return done;
}

WaitObserver* observe_waits(WaitObserver* observer) noexcept {
  return std::exchange(wait_observer, observer);
}

void Work::wait(const std::function<void()>& meanwhile) {
  Backoff backoff;
  bool reported = false;
  while (!test()) {
    if (meanwhile) meanwhile();
    if (backoff.pause() && wait_observer != nullptr) {
      wait_observer->waits_for(state_->waits_for());
      reported = true;
    }
  }
  if (reported) wait_observer->waits_for(WaitObserver::kNobody);
}

std::vector<std::vector<std::vector<int>>> disjoint_rounds(
    const std::vector<std::vector<int>>& sets) {
  std::vector<std::vector<std::vector<int>>> rounds;
  std::vector<std::set<int>> taken;  // by round
  for (const std::vector<int>& ranks : sets) {
    const auto free = [&](const std::set<int>& used) {
      return std::none_of(ranks.begin(), ranks.end(), [&](int r) { return used.contains(r); });
    };
    std::size_t round = 0;
    while (round < rounds.size() && !free(taken[round])) ++round;
    if (round == rounds.size()) {
      rounds.emplace_back();
      taken.emplace_back();
    }
    rounds[round].push_back(ranks);
    taken[round].insert(ranks.begin(), ranks.end());
  }
  return rounds;
}

Work Communicator::all_gather(ConstBytes mine, std::span<const Bytes> recv) {
  CONCERTINA_CHECK(std::ssize(recv) == size(), "all_gather over {} ranks receives {} buffers",
                   size(), recv.size());
  const Bytes to = recv[at(rank())];
  CONCERTINA_CHECK(mine.size() == to.size(), "all_gather: {} bytes to this rank itself, {} from it",
                   to.size(), mine.size());
  if (!mine.empty() && mine.data() != to.data()) copy_own(mine, to);
  return start_all_gather(recv);
}

Work Communicator::start_all_gather(std::span<const Bytes> blocks) {
  sends_.clear();
  receives_.clear();
  for (int step = 1; step < size(); ++step) {
    const int from = (rank() + size() - step) % size(), to = (rank() + step) % size();
    receives_.push_back({blocks[at(from)], from, step});
    sends_.push_back({blocks[at(rank())], to, step});
  }
  return start_exchange("all_gather", sends_, receives_);
}

Work Communicator::exchange(std::span<const Send> sends, std::span<const Receive> receives) {
  const auto check = [&](int peer, int step, int last) {
    check_rank(peer, "exchange");
    CONCERTINA_CHECK(peer != rank(), "exchange of rank {} with itself", peer);
    CONCERTINA_CHECK(step >= last, "exchange of rank {} names rank {} in step {} after step {}",
                     rank(), peer, step, last);
  };
  for (std::size_t i = 0; i < sends.size(); ++i)
    check(sends[i].to, sends[i].step, sends[i > 0 ? i - 1 : 0].step);
  for (std::size_t i = 0; i < receives.size(); ++i)
    check(receives[i].from, receives[i].step, receives[i > 0 ? i - 1 : 0].step);
  return start_exchange("exchange", sends, receives);
}

void Communicator::check_rank(int rank, const char* operation) const {
  CONCERTINA_CHECK(rank >= 0 && rank < size(), "{} names rank {} of {}", operation, rank, size());
}

}  // namespace concertina
