#include "experiments/report/gantt_boxes.h"

#include <fmt/format.h>

#include <algorithm>

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
  return fmt::format("{:.3f} to {:.3f} ms: {}", start * 1e3, end * 1e3,
                     html::duration(end - start));
}

GanttBox::Style style_of(Cause cause) {
  if (cause == Cause::transfer) return GanttBox::kTransfer;
  return cause == Cause::reduction ? GanttBox::kReduction : GanttBox::kGather;
}

std::string wait_text(const WaitTime& wait) {
  switch (wait.what) {
    case WaitFor::reduction:
      return "gradients of other ranks";
    case WaitFor::ranks:
      return "all ranks";
    case WaitFor::weights:
      return "weights of other ranks";
    default:
      return title(wait.transfer);
  }
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
      box.title = fmt::format("{}\n{}", title(action), span_text(box.start, box.end));
    }
    boxes.push_back(std::move(box));
  }
  return boxes;
}

void add_waits(const StepRecord& record, const std::vector<double>& computed, double origin,
               std::vector<GanttBox>& boxes) {
  for (std::size_t i = 0; i < record.waits.size(); ++i) {
    const WaitTime& wait = record.waits[i];
    const auto add = [&](GanttBox::Style style, const char* what, double start, double end) {
      if (end > start)
        boxes.push_back({style,
                         start - origin,
                         end - origin,
                         {},
                         fmt::format("{} {}\n{}", what, wait_text(wait),
                                     span_text(start - origin, end - origin)),
                         0,
                         0});
    };
    add(GanttBox::kPeers, "idle until computed:", wait.start, computed[i]);
    add(style_of(cause_of(wait.what)), "waits for the transfer:", computed[i], wait.end);
  }
}

}  // namespace concertina
