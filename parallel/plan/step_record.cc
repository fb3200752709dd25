#include "parallel/plan/step_record.h"

#include <algorithm>

namespace concertina {

double waited(const StepRecord& record, const ActionTime& time) {
  double seconds = 0;
  for (const WaitTime& wait : record.waits)
    seconds += std::max(0.0, std::min(wait.end, time.end) - std::max(wait.start, time.start));
  return seconds;
}

double busy_seconds(const std::vector<Action>& row, const StepRecord& record) {
  // Actions may share a span (interleaved forward and backward passes): count the union.
  double busy = 0, covered = record.start;
  std::size_t wait = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    if (!is_compute(row[i].kind) && row[i].kind != Kind::STEP) continue;
    const double start = std::max(covered, record.actions[i].start);
    const double end = record.actions[i].end;
    if (end <= start) continue;
    busy += end - start;
    while (wait < record.waits.size() && record.waits[wait].end <= start) ++wait;
    for (; wait < record.waits.size() && record.waits[wait].start < end; ++wait) {
      const WaitTime& one = record.waits[wait];
      busy -= std::min(end, one.end) - std::max(start, one.start);
      if (one.end > end) break;  // continues in the next span
    }
    covered = end;
  }
  return busy;
}

StepPace pace_of(const std::vector<Action>& row, const StepRecord& record) {
  StepPace pace;
  std::array<int, 4> computed{};
  std::array<int, 2> sends{}, receives{};
  const auto add = [](double& sum, int& count, double value) { sum += value, ++count; };
  std::size_t wait = 0;
  for (std::size_t i = 0; i < row.size(); ++i) {
    const ActionTime& time = record.actions[i];
    if (is_send(row[i].kind)) {
      const std::size_t way = row[i].kind == Kind::SEND_B ? 1 : 0;
      add(pace.sent[way], sends[way], time.start);
    }
    if (!is_compute(row[i].kind)) continue;
    double busy = time.busy;
    while (wait < record.waits.size() && record.waits[wait].end <= time.start) ++wait;
    for (std::size_t w = wait; w < record.waits.size() && record.waits[w].start < time.end; ++w)
      busy -= std::min(time.end, record.waits[w].end) - std::max(time.start, record.waits[w].start);
    const auto kind = static_cast<std::size_t>(row[i].kind);
    add(pace.compute[kind], computed[kind], std::max(0.0, busy));
  }
  for (const Completion& one : record.completions) {
    if (is_send(one.transfer.kind)) continue;
    const std::size_t way = one.transfer.kind == Kind::RECV_B ? 1 : 0;
    add(pace.received[way], receives[way], one.time);
  }
  const auto divide = [](auto& sums, const auto& counts) {
    for (std::size_t i = 0; i < sums.size(); ++i) sums[i] /= std::max(1, counts[i]);
  };
  divide(pace.compute, computed);
  divide(pace.sent, sends);
  divide(pace.received, receives);
  return pace;
}

}  // namespace concertina
