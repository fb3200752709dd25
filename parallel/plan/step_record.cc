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
  // Actions may share a span (a forward and a backward pass that take turns): count the union.
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
      if (one.end > end) break;  // goes on in the next span
    }
    covered = end;
  }
  return busy;
}

}  // namespace concertina
