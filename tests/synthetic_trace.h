// The trace that the executor would record if a step ran exactly as simulated.
#pragma once

#include "experiments/record/report_metrics.h"
#include "experiments/record/run_trace.h"
#include "parallel/generate/passes.h"
#include "parallel/plan/plan_index.h"

namespace concertina {

/// Returns a layout with `pp` stages of two units on each of dp x pp ranks.
inline Layout grid_layout(int pp, int dp, int microbatches, int chunks = 1) {
  std::vector<UnitRange> units;
  for (int s = 0; s < pp * chunks; ++s) units.push_back({2 * s, 2 * s + 2});
  return make_layout(units, Grid{pp, dp}, microbatches, microbatches, chunks);
}

inline StepRecord synthetic_record(const RunTrace& trace, const PlanIndex& index,
                                   const Timeline& timeline, std::size_t rank, std::int64_t step,
                                   double origin) {
  const std::vector<Action>& row = trace.plan.rows[rank];
  StepRecord record{.step = step,
                    .start = origin,
                    .end = origin + timeline.makespan,
                    .actions = {},
                    .waits = {},
                    .completions = {},
                    .memory = {}};
  double last = origin;
  for (std::size_t i = 0; i < row.size(); ++i) {
    double start = origin + timeline.rows[rank][i].start;
    const double end = origin + timeline.rows[rank][i].end;
    const StageInfo* stage =
        row[i].stage >= 0 ? &index.stages()[static_cast<std::size_t>(row[i].stage)] : nullptr;
    Action receive{Kind::RECV_F, row[i].stage, row[i].microbatch};
    const bool gradient = makes_input_gradient(row[i].kind);
    if (gradient) receive.kind = Kind::RECV_B;
    if ((row[i].kind == Kind::F && stage->remote_previous) || (gradient && stage->remote_next)) {
      if (start > last) record.waits.push_back({WaitFor::receive, receive, last, start});
      record.completions.push_back({receive, start});
    }
    if (row[i].kind == Kind::STEP) {
      if (start > last) record.waits.push_back({WaitFor::ranks, row[i], last, start});
      start = last;
    }
    record.actions.push_back({start, end, end - start});
    last = std::max(last, end);
  }
  return record;
}

/// Returns `steps` consecutive steps.
inline RunTrace synthetic_trace(const Layout& layout, const std::string& schedule,
                                const Costs& costs, int steps) {
  RunTrace trace;
  trace.run = "a <run> & \"more\"";
  trace.schedule = schedule;
  trace.layout = layout;
  trace.plan = make_plan(layout, schedule);
  for (std::size_t s = 0; s < costs.stages.size(); ++s) {
    trace.saved_bytes.push_back(1000000 + 64 * s);
    trace.grad_bytes.push_back(500032);
  }
  trace.boundary_bytes = 4096;
  trace.clock_error = 1.5e-6;
  const Timeline timeline = simulate(trace.plan, layout, costs);
  const PlanIndex index(trace.plan, layout);
  for (int step = 0; step < steps; ++step) {
    std::vector<StepRecord>& ranks = trace.steps.emplace_back();
    const double origin = step * timeline.makespan * 1.5;
    for (std::size_t rank = 0; rank < trace.plan.rows.size(); ++rank) {
      ranks.push_back(synthetic_record(trace, index, timeline, rank, step + 3, origin));
      ranks.back().memory = saved_over_time(trace, rank, timeline.rows[rank]);
      for (MemorySample& sample : ranks.back().memory) sample.time += origin;
    }
    for (StepRecord& sender : ranks)
      for (StepRecord& receiver : ranks)
        for (const Completion& one : std::vector(receiver.completions)) {
          const Action send = counterpart(one.transfer);
          if (is_send(send.kind) &&
              &ranks[static_cast<std::size_t>(index.place(index.find(send)).rank)] == &sender)
            sender.completions.push_back({send, one.time});
        }
  }
  return trace;
}

}  // namespace concertina
