#include "parallel/plan/plan_memory.h"

#include <algorithm>
#include <map>

#include "core/error.h"
#include "parallel/plan/plan_graph.h"

namespace concertina {
namespace {

/// Counts live buffers and their peak.
class Gauge {
 public:
  void take() { peak_ = std::max(peak_, ++live_); }
  void release() {
    CONCERTINA_CHECK(live_ > 0, "a buffer was released but never taken");
    --live_;
  }
  int peak() const { return peak_; }

 private:
  int live_ = 0, peak_ = 0;
};

class RowGauges {
 public:
  explicit RowGauges(const std::vector<StageInfo>& stages) : stages_(stages) {}

  void run(const Action& action) {
    switch (action.kind) {
      case Kind::RECV_F:
        return inputs_.take();
      case Kind::RECV_B:
        return output_grads_.take();
      case Kind::SEND_B:
        ++gradient_sends_;
        return;
      case Kind::SEND_F:
        if (stages_[action.stage].sends_unanswered()) ++activation_sends_;
        return;
      case Kind::F:
        return forward(action.stage);
      case Kind::I:
        grads_[action.stage].take();
        return start_backward(action.stage);
      case Kind::W:
        grads_[action.stage].release();
        return end_backward(action.stage);
      case Kind::B:
        start_backward(action.stage);
        return end_backward(action.stage);
      case Kind::REDUCE:
      case Kind::STEP:
        return;
    }
  }

  RowMemory result() {
    RowMemory memory{{},
                     inputs_.peak(),
                     outputs_.peak(),
                     output_grads_.peak(),
                     std::min(kSendBuffers, gradient_sends_),
                     std::min(kSendBuffers, activation_sends_)};
    for (const auto& [stage, saved] : saved_)
      memory.stages.push_back({stage, saved.peak(), grads_[stage].peak()});
    return memory;
  }

 private:
  void forward(int stage) {
    const StageInfo& info = stages_[stage];
    Gauge& saved = saved_[stage];
    if (info.trains) saved.take();
    if (info.receives_gradient) outputs_.take();
    if (!info.last && !info.remote_next) inputs_.take();
    if (!info.first && !info.keeps_input) inputs_.release();
  }
  void start_backward(int stage) {
    const StageInfo& info = stages_[stage];
    if (info.gives_gradient && !info.remote_previous) output_grads_.take();
  }
  void end_backward(int stage) {
    const StageInfo& info = stages_[stage];
    saved_[stage].release();
    if (info.keeps_input) inputs_.release();
    if (info.last) return;
    output_grads_.release();
    if (info.remote_next) outputs_.release();
  }

  const std::vector<StageInfo>& stages_;
  std::map<int, Gauge> saved_, grads_;  // by stage
  Gauge inputs_, outputs_, output_grads_;
  int gradient_sends_ = 0, activation_sends_ = 0;
};

RowMemory row_memory(const std::vector<Action>& row, const std::vector<StageInfo>& stages) {
  RowGauges gauges(stages);
  for (const Action& action : row) gauges.run(action);
  return gauges.result();
}

}  // namespace

std::vector<RowMemory> plan_memory(const Plan& plan, const Layout& layout) {
  const std::vector<StageInfo> stages = stage_infos(layout);
  std::vector<RowMemory> result;
  for (const std::vector<Action>& row : plan.rows) result.push_back(row_memory(row, stages));
  return result;
}

RowMemory plan_memory(const Plan& plan, const Layout& layout, int rank) {
  return row_memory(plan.rows[static_cast<std::size_t>(rank)], stage_infos(layout));
}

std::size_t peak_saved(const std::vector<Action>& row,
                       const std::function<std::size_t(int stage)>& weight) {
  std::size_t live = 0, peak = 0;
  for (const Action& action : row) {
    if (action.kind == Kind::F) peak = std::max(peak, live += weight(action.stage));
    if (makes_weight_gradient(action.kind)) live -= weight(action.stage);
  }
  return peak;
}

}  // namespace concertina
