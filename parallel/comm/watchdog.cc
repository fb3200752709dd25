#include "parallel/comm/watchdog.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "core/log.h"
#include "parallel/comm/thread_stack.h"

namespace concertina {
namespace {

constexpr double kReportSeconds = 2, kReportSteps = 3;
constexpr double kEndSeconds = 30, kEndSteps = 20;
/// A computing thread is starved if it gets less of a core than kFedShare and is queued for one for
/// more than kQueuedShare of the time.
constexpr double kFedShare = 0.25, kQueuedShare = 0.5;
/// A rank counts as slow for this long after bytes last moved.
constexpr double kMovedSeconds = 1;
/// A thread that uses more of a core than this is computing.
constexpr double kBusyShare = 0.02;
/// Number of checks before the first report.
constexpr double kLooks = 16;
constexpr unsigned kShownOfOne = 12, kShownOfOthers = 3;

}  // namespace

double report_seconds(double step) {
  return std::max(kReportSeconds, kReportSteps * step);
}

double end_seconds(double step) {
  return std::max(kEndSeconds, kEndSteps * step);
}

Watchdog::Watchdog(int rank, WatchdogOptions options, OnHang on_hang)
    : rank_(rank),
      options_(std::move(options)),
      on_hang_(std::move(on_hang)),
      watched_(::gettid()),
      log_(options_.log == nullptr ? own_ : *options_.log),
      before_(observe_waits(this)) {
  log_.begin("starting", -1, -1, -1);
  if (options_.limit.count() <= 0) return;
  prepare_stacks();
  thread_ = std::jthread([this](const std::stop_token& stop) { watch(stop); });
}

Watchdog::Watchdog(int rank, Seconds limit, OnHang on_hang)
    : Watchdog(rank, WatchdogOptions{.limit = limit}, std::move(on_hang)) {}

void Watchdog::step_done(std::int64_t step, double seconds) noexcept {
  step_.store(step, std::memory_order_relaxed);
  pace_.add(seconds);
  step_seconds_.store(pace_.seconds(), std::memory_order_relaxed);
  beat();
}

std::string Watchdog::report(Seconds silent) const {
  Operation now = log_.last(1).at(0);
  const int peer = log_.waits_for() >= 0 ? log_.waits_for() : now.peer;
  now.peer = -1;
  std::string text =
      fmt::format("rank {}: no progress for {:.3g} s: {}", rank_, silent.count(), to_text(now));
  if (peer >= 0) text += fmt::format(", waits for rank {}", peer);
  return text;
}

Watchdog::Patience::Patience(Watchdog* watchdog, const char* what) noexcept : watchdog_(watchdog) {
  if (watchdog_ == nullptr) return;
  watchdog_->log_.patient(1);
  watchdog_->at(what);
}

Watchdog::Patience::~Patience() {
  if (watchdog_ == nullptr) return;
  watchdog_->beat();
  watchdog_->log_.patient(-1);
}

const OperationLog* Watchdog::log_of(int rank) const {
  if (rank == rank_) return &log_;
  return rank >= 0 && rank < std::ssize(options_.host)
             ? options_.host[static_cast<std::size_t>(rank)]
             : nullptr;
}

/// Whether rank `from` of this host waits for `rank`, directly or indirectly.
bool Watchdog::leads_to(int from, int rank) const {
  for (std::size_t i = 0; i <= options_.host.size(); ++i) {
    const OperationLog* log = log_of(from);
    if (log == nullptr) return false;
    from = log->waits_for();
    if (from == rank) return true;
  }
  return false;
}

/// Judges a waiting rank by the other ranks of the host. It `speaks` if no other rank will report.
Silence Watchdog::judge_wait(const Seen& seen, bool& speaks) const {
  const int next = log_.waits_for();
  if (next == OperationLog::kUnknown) {
    // If another rank of this host is not waiting, that rank reports why, or it continues.
    for (int rank = 0; rank < std::ssize(options_.host); ++rank) {
      const OperationLog* log = log_of(rank);
      if (log == nullptr || rank == rank_) continue;
      const int waits = log->waits_for();
      speaks = speaks && waits != OperationLog::kNobody &&
               (waits != OperationLog::kUnknown || rank > rank_);
    }
    return Silence::outside;
  }
  if (log_of(next) == nullptr) return Silence::outside;
  speaks = false;
  if (!leads_to(next, rank_)) return Silence::follows;
  // The lowest rank of the cycle reports, and only if none of its ranks continues.
  speaks = true;
  for (int rank = next; rank != rank_; rank = log_of(rank)->waits_for()) {
    const OperationLog* log = log_of(rank);
    if (log == nullptr || log->silent() < seen.silent / 2) return speaks = false, Silence::follows;
    if (rank < rank_) speaks = false;
  }
  return Silence::cycle;
}

/// Whether the rank at the end of the chain of waits is slow.
bool Watchdog::waits_for_slow() const {
  const OperationLog* log = &log_;
  for (std::size_t i = 0; i <= options_.host.size() && log != nullptr; ++i) {
    if (log->waits_for() == OperationLog::kNobody) return log != &log_ && log->is_slow();
    log = log_of(log->waits_for());
  }
  return false;
}

/// Judges a rank that waits for no other rank by the state of its thread.
Silence Watchdog::judge_alone(const ThreadActivity& now, const Seen& seen) {
  const double seconds = std::max(1e-3, seen.silent - seen.sampled_at);
  const double share = (now.cpu_seconds - seen.first->cpu_seconds) / seconds;
  const double queued = (now.queued_seconds - seen.first->queued_seconds) / seconds;
  if (share < kBusyShare) return Silence::blocked;
  return share < kFedShare && queued > kQueuedShare ? Silence::starved : Silence::computes;
}

Silence Watchdog::judge(Seen& seen, bool& speaks) const {
  speaks = true;
  if (log_.is_patient()) return Silence::meant;
  const ThreadActivity now = activity_of(watched_), before = std::exchange(seen.last, now);
  const bool waits = log_.waits_for() != OperationLog::kNobody;
  if (now.io_bytes != before.io_bytes || now.faults != before.faults || now.state == 'D')
    seen.moved_at = seen.silent;
  if (seen.silent - seen.moved_at < kMovedSeconds) return Silence::storage;
  return waits ? judge_wait(seen, speaks) : judge_alone(now, seen);
}

Stall Watchdog::stall_of(const Seen& seen, Silence silence, bool ends) const {
  Stall stall{.rank = rank_,
              .seconds = seen.silent,
              .silence = silence,
              .ends = ends,
              .step = step_.load(std::memory_order_relaxed),
              .now = log_.last(1).at(0),
              .waits_for = log_.waits_for()};
  stall.last.emplace_back(rank_, log_.last(kShownOfOne));
  for (int rank = 0; rank < std::ssize(options_.host); ++rank) {
    const OperationLog* log = log_of(rank);
    if (log == nullptr || rank == rank_) continue;
    if (leads_to(rank, rank_) || log->waits_for() == OperationLog::kUnknown)
      stall.waiting.push_back(rank);
    if (log->waits_for() != OperationLog::kNobody || rank == stall.waits_for)
      stall.last.emplace_back(rank, log->last(kShownOfOthers));
  }
  if (log_.waits_for() == OperationLog::kNobody && silence != Silence::storage)
    stall.stack = stack_of(watched_);
  return stall;
}

void Watchdog::look_by_pace(Seen& seen, Silence silence, bool speaks) {
  const double step = step_seconds_.load(std::memory_order_relaxed);
  if (!speaks || step == 0 || silence == Silence::meant) return;
  const auto tell = [&](bool ends) {
    const Stall stall = stall_of(seen, silence, ends);
    if (options_.on_stall)
      options_.on_stall(stall);
    else
      log::warn("{}", report_of(stall));
  };
  if (!seen.warned && seen.silent >= report_seconds(step) * (1 - 2 / kLooks)) {
    seen.warned = true;
    tell(false);
  }
  // A rank that shares its core is not aborted for the time used by others, and a rank with
  // intermittently blocked storage is not aborted either.
  const bool uses_core = silence == Silence::computes || silence == Silence::starved;
  const double still = seen.silent - std::max(0.0, seen.moved_at);
  const double spent =
      uses_core ? std::min(still, seen.last.cpu_seconds - seen.first->cpu_seconds) : still;
  if (!options_.ends_by_pace || !(uses_core || hangs(silence)) || seen.ended) return;
  if (spent < std::min(end_seconds(step), 1.25 * options_.limit.count())) return;
  seen.ended = true;
  tell(true);
  on_hang_(headline(stall_of(seen, silence, true)));
}

/// Checks the current silence once.
void Watchdog::look(Seen& seen) {
  const double limit = options_.limit.count();
  const double step = step_seconds_.load(std::memory_order_relaxed);
  const double first = step > 0 ? std::min(limit, report_seconds(step)) : limit;
  if (seen.silent < first / 4) return;
  if (!seen.first) {
    seen.first = seen.last = activity_of(watched_);
    seen.sampled_at = seen.silent;
  }
  if (seen.silent < first / 2) return;
  bool speaks = true;
  const Silence silence = judge(seen, speaks);
  log_.silent(static_cast<float>(seen.silent), is_slow(silence));
  look_by_pace(seen, silence, speaks);
  if (seen.ended) return;
  const bool slow = is_slow(silence) || waits_for_slow();
  if (seen.next_report == 0) seen.next_report = limit;
  if (slow && seen.silent >= seen.next_report) {
    seen.next_report = 2 * seen.silent;
    log::warn("{} (still waiting: the launch is not aborted)", report(Seconds(seen.silent)));
  } else if (!slow && seen.silent >= limit && seen.next_report == limit) {
    seen.next_report = 2 * limit;
    log::error("{}", report(Seconds(seen.silent)));
  } else if (!slow && seen.silent >= 1.25 * limit && !std::exchange(seen.reported, true)) {
    on_hang_(report(Seconds(seen.silent)));
  }
}

void Watchdog::watch(const std::stop_token& stop) {
  using Clock = std::chrono::steady_clock;
  const double limit = options_.limit.count();
  unsigned known = log_.beats();
  Seen seen;
  Clock::time_point last = Clock::now();
  std::unique_lock lock(mutex_);
  for (;;) {
    const double step = step_seconds_.load(std::memory_order_relaxed);
    const Seconds period(std::max(1e-3, std::min(limit / 8, report_seconds(step) / kLooks)));
    wake_.wait_for(lock, stop, period, [] { return false; });
    if (stop.stop_requested()) return;
    const Clock::time_point now = Clock::now();
    // A tick that is much too late means that the whole process was stopped.
    seen.silent += std::min<Seconds>(now - std::exchange(last, now), 2 * period).count();
    if (const unsigned beats = log_.beats(); beats != std::exchange(known, beats)) {
      if (seen.warned) log::warn("rank {} continues after {:.1f} s", rank_, seen.silent);
      seen = {};
      log_.silent(0, false);
      continue;
    }
    // Slow until look() decides otherwise, since others may read at any time.
    log_.silent(static_cast<float>(seen.silent), log_.is_slow());
    look(seen);
  }
}

}  // namespace concertina
