#include "parallel/runtime/trace_recorder.h"

#include <algorithm>

#include "core/error.h"

namespace concertina {
namespace {

/// Seconds; less is no wait but the price of asking.
constexpr double kShortestWait = 1e-6;

}  // namespace

TraceRecorder::TraceRecorder(const std::vector<Action>& row)
    : actions_(row.size()),
      transfers_(static_cast<std::size_t>(std::ranges::count_if(
          row, [](const Action& action) { return is_transfer(action.kind); }))),
      scratch_(empty_record(false)) {}

StepRecord TraceRecorder::empty_record(bool detailed) const {
  StepRecord record;
  record.actions.resize(actions_);
  // One wait a transfer; reduction, sums and weights at the end.
  record.waits.reserve(transfers_ + 3);
  record.completions.reserve(transfers_);
  if (detailed) record.memory.reserve(2 * actions_);
  return record;
}

void TraceRecorder::keep(std::int64_t first, int count) {
  release();
  first_ = first;
  for (int i = 0; i < count; ++i) kept_.push_back(empty_record(true));
}

void TraceRecorder::begin_step(std::int64_t step) {
  const std::int64_t index = step - first_;
  kept_index_ = index >= 0 && index < static_cast<std::int64_t>(kept_.size()) ? index : -1;
  StepRecord& record = current();
  record.step = step;
  record.stage_seconds = 0;
  std::ranges::fill(record.actions, ActionTime{});
  record.waits.clear();
  record.completions.clear();
  record.memory.clear();
  active_ = true;
  record.start = now();
}

void TraceRecorder::waited(WaitFor what, const Action& transfer, double start) {
  const double end = now();
  if (!active_ || end - start < kShortestWait) return;
  std::vector<WaitTime>& waits = current().waits;
  CONCERTINA_CHECK(waits.size() < waits.capacity(), "more than {} waits in a step", waits.size());
  waits.push_back({what, transfer, start, end});
}

void TraceRecorder::completed(const Action& transfer) {
  if (!active_) return;
  std::vector<Completion>& completions = current().completions;
  CONCERTINA_CHECK(completions.size() < completions.capacity(), "more than {} transfers in a step",
                   completions.size());
  completions.push_back({transfer, now()});
}

void TraceRecorder::release() {
  kept_.clear();
  kept_index_ = -1;
}

}  // namespace concertina
