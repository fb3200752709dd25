#include "experiments/report/gantt_boxes.h"

#include <fmt/format.h>

#include <algorithm>

#include "core/number_text.h"
#include "experiments/report/html.h"

namespace concertina {
namespace {

GanttBox::Style style_of(Kind kind) {
  switch (kind) {
    case Kind::F:
      return GanttBox::kForward;
    case Kind::I:
      return GanttBox::kInput;
    case Kind::W:
      return GanttBox::kWeight;
    case Kind::STEP:
      return GanttBox::kOptimizer;
    default:
      return GanttBox::kBackward;
  }
}

std::string span_text(double start, double end) {
  return fmt::format("{:.3f} to {:.3f} ms: {}", start * 1e3, end * 1e3, duration_text(end - start));
}

GanttBox::Style style_of(Cause cause) {
  if (cause == Cause::transfer) return GanttBox::kTransfer;
  return cause == Cause::reduction ? GanttBox::kReduction : GanttBox::kGather;
}

std::string wait_text(const WaitTime& wait, const Layout& layout) {
  switch (wait.what) {
    case WaitFor::reduction:
      return "gradients of other ranks";
    case WaitFor::ranks:
      return "all ranks";
    case WaitFor::weights:
      return "weights of other ranks";
    default:
      return title(wait.transfer, layout);
  }
}

/// On `rank` and those that it shares gradients with, in the prediction.
double last_gradient(const RunTrace& trace, const ReportFigures& figures, std::size_t rank) {
  double last = 0;
  for (const BucketCosts& bucket : figures.costs.buckets) {
    if (std::ranges::count(bucket.ranks, static_cast<int>(rank)) == 0) continue;
    for (const int holder : bucket.ranks) {
      const auto& row = trace.plan.rows[static_cast<std::size_t>(holder)];
      for (std::size_t i = 0; i < row.size(); ++i)
        if (is_compute(row[i].kind))
          last = std::max(last, figures.predicted.rows[static_cast<std::size_t>(holder)][i].end);
    }
  }
  return last;
}

void add_wait(GanttBox::Style style, const std::string& what, double start, double end,
              std::vector<GanttBox>& boxes) {
  if (end > start)
    boxes.push_back(
        {style, start, end, {}, fmt::format("{}\n{}", what, span_text(start, end)), 0, 0});
}

}  // namespace

std::vector<GanttBox> action_boxes(const RunTrace& trace, std::size_t rank,
                                   const std::vector<Interval>& times, bool with_titles) {
  std::vector<int> stages;
  for (int s = 0; s < trace.layout.stage_count(); ++s)
    if (trace.layout.stage(s).rank == static_cast<int>(rank)) stages.push_back(s);
  std::vector<GanttBox> boxes;
  for (std::size_t i = 0; i < trace.plan.rows[rank].size(); ++i) {
    const Action& action = trace.plan.rows[rank][i];
    if (!is_compute(action.kind) && action.kind != Kind::STEP) continue;
    GanttBox box{style_of(action.kind), times[i].start, times[i].end, {}, {}, 0, 0};
    if (action.overlapped) box.part = 1;
    if (i > 0 && trace.plan.rows[rank][i - 1].overlapped) box.part = 2;
    if (is_compute(action.kind))
      box.chunk = static_cast<int>(std::ranges::find(stages, action.stage) - stages.begin());
    if (with_titles) {
      if (is_compute(action.kind)) box.text = std::to_string(action.microbatch);
      box.title = fmt::format("{}\n{}", title(action, trace.layout), span_text(box.start, box.end));
    }
    boxes.push_back(std::move(box));
  }
  return boxes;
}

void add_predicted_waits(const RunTrace& trace, const ReportFigures& figures, std::size_t rank,
                         std::vector<GanttBox>& boxes) {
  const std::vector<Action>& row = trace.plan.rows[rank];
  const double computed = last_gradient(trace, figures, rank);
  for (std::size_t i = 0; i < row.size(); ++i) {
    const Interval& time = figures.predicted.rows[rank][i];
    const double before = i > 0 ? figures.predicted.rows[rank][i - 1].end : 0;
    if (row[i].kind == Kind::REDUCE)
      add_wait(GanttBox::kReduction, "waits for the transfer: gradients of other ranks",
               std::max(before, computed), time.end, boxes);
    if (row[i].kind != Kind::STEP || figures.costs.ranks.empty()) continue;
    const RankCosts& own = figures.costs.ranks[rank];
    const double end = time.end - own.refresh;
    add_wait(GanttBox::kGather, "waits for the transfer: weights of other ranks",
             time.start + own.norm + own.update, end, boxes);
  }
}

void add_waits(const Layout& layout, const StepRecord& record, const std::vector<double>& computed,
               double origin, std::vector<GanttBox>& boxes) {
  for (std::size_t i = 0; i < record.waits.size(); ++i) {
    const WaitTime& wait = record.waits[i];
    const std::string what = wait_text(wait, layout);
    add_wait(GanttBox::kPeers, "idle until computed: " + what, wait.start - origin,
             computed[i] - origin, boxes);
    add_wait(style_of(cause_of(wait.what)), "waits for the transfer: " + what, computed[i] - origin,
             wait.end - origin, boxes);
  }
}

}  // namespace concertina
