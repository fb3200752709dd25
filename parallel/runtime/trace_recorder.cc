#include "parallel/runtime/trace_recorder.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/clock.h"
#include "core/error.h"

namespace concertina {
namespace {

/// Seconds; a shorter time is the cost of polling rather than a wait.
constexpr double kShortestWait = 1e-6;

/// One wait per transfer, plus reduction, sums and weights at the end.
std::size_t most_waits(std::size_t transfers) {
  return transfers + 3;
}

}  // namespace

TraceRecorder::TraceRecorder(const std::vector<Action>& row, int rank, std::size_t turns,
                             KernelClock& clock)
    : row_(row),
      clock_(clock),
      transfers_(static_cast<std::size_t>(std::ranges::count_if(
          row, [](const Action& action) { return is_transfer(action.kind); }))),
      scratch_(empty_record(false)) {
  for (std::size_t i = 0; i < row.size(); ++i) {
    const std::string pair = row[i].overlapped ? " and " + to_text(row[i + 1]) : "";
    names_.push_back(fmt::format("rank {}: {}{}", rank, to_text(row[i]), pair));
  }
  turns_.reserve(turns);
  const std::size_t step = 2, actions = 2 * row.size(), memory = actions;
  clock.reserve(step + actions + memory + 2 * most_waits(transfers_) + turns);
}

StepRecord TraceRecorder::empty_record(bool detailed) const {
  StepRecord record;
  record.actions.resize(row_.size());
  record.waits.reserve(most_waits(transfers_));
  record.completions.reserve(transfers_);
  if (detailed) record.memory.reserve(2 * row_.size());
  return record;
}

void TraceRecorder::keep(std::int64_t first, int count, int stride) {
  release();
  first_ = first;
  stride_ = stride;
  for (int i = 0; i < count; ++i) kept_.push_back(empty_record(true));
}

void TraceRecorder::begin_step(std::int64_t step) {
  const std::int64_t index = (step - first_) / stride_;
  kept_index_ = step >= first_ && index < static_cast<std::int64_t>(kept_.size()) ? index : -1;
  StepRecord& record = current();
  record.step = step;
  record.stage_seconds = 0;
  std::ranges::fill(record.actions, ActionTime{});
  record.waits.clear();
  record.completions.clear();
  record.memory.clear();
  turns_.clear();
  active_ = true;
  record.start = clock_.mark();
}

void TraceRecorder::waited(WaitFor what, const Action& transfer, double start) {
  if (!active_) return;
  std::vector<WaitTime>& waits = current().waits;
  CONCERTINA_CHECK(waits.size() < waits.capacity(), "more than {} waits in a step", waits.size());
  waits.push_back({what, transfer, start, clock_.mark()});
}

void TraceRecorder::completed(const Action& transfer) {
  if (!active_) return;
  std::vector<Completion>& completions = current().completions;
  CONCERTINA_CHECK(completions.size() < completions.capacity(), "more than {} transfers in a step",
                   completions.size());
  completions.push_back({transfer, now()});
}

void TraceRecorder::end_step() {
  current().end = clock_.mark();
  active_ = false;
  clock_.settle();
  set_times(current());
}

/// Converts marks to times.
void TraceRecorder::set_times(StepRecord& record) {
  const auto set = [this](auto&... marks) { ((marks = clock_.time(marks)), ...); };
  set(record.start, record.end);
  for (WaitTime& wait : record.waits) set(wait.start, wait.end);
  const double shortest = kShortestWait + 2 * clock_.mark_seconds();
  std::erase_if(record.waits,
                [=](const WaitTime& wait) { return wait.end - wait.start < shortest; });
  for (MemorySample& sample : record.memory) set(sample.time);
  for (Turn& turn : turns_) set(turn.start);
  auto turn = turns_.cbegin();
  for (std::size_t i = 0; i < row_.size(); ++i) {
    ActionTime& time = record.actions[i];
    set(time.start, time.end);
    if (!row_[i].overlapped) {
      time.busy = time.end - time.start;
      continue;
    }
    record.actions[i + 1] = time;
    // The first turn includes the time before it, and each turn the time until the next.
    double start = time.start;
    for (++i; turn != turns_.cend() && turn->action <= i; ++turn) {
      const auto next = turn + 1;
      const double end = next != turns_.cend() && next->action <= i ? next->start : time.end;
      record.actions[turn->action].busy += end - start;
      start = end;
    }
  }
}

void TraceRecorder::release() {
  kept_.clear();
  kept_index_ = -1;
}

}  // namespace concertina
