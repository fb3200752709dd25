#include "experiments/predict/predict_memory.h"

#include <algorithm>
#include <map>

#include "core/backend_around.h"
#include "experiments/run/devices.h"
#include "experiments/run/planning.h"
#include "experiments/run/trainer.h"
#include "parallel/plan/plan_memory.h"
#include "parallel/runtime/gradient_tree.h"

namespace concertina {
namespace {

/// An operator that is only asked what it takes; units of equal shape share it.
class SharedLinear final : public Linear {
 public:
  explicit SharedLinear(std::shared_ptr<Linear> inner)
      : Linear(inner->shape()), inner_(std::move(inner)) {}
  std::size_t packed_bytes() const override { return inner_->packed_bytes(); }
  void pack(const PackWeights& op) override { inner_->pack(op); }
  void forward(const LinearForward& op) override { inner_->forward(op); }
  void backward_input(const LinearInput& op) override { inner_->backward_input(op); }
  void backward_weight(const LinearWeight& op) override { inner_->backward_weight(op); }

 private:
  std::shared_ptr<Linear> inner_;
};

class SharedAttention final : public Attention {
 public:
  explicit SharedAttention(std::shared_ptr<Attention> inner)
      : Attention(inner->shape()), inner_(std::move(inner)) {}
  void forward(const AttentionForward& op) override { inner_->forward(op); }
  void backward(const AttentionBackward& op) override { inner_->backward(op); }

 private:
  std::shared_ptr<Attention> inner_;
};

/// Makes one operator of each shape: a rank may have a thousand layers.
class SharedOperators final : public BackendAround {
 public:
  using BackendAround::BackendAround;
  std::unique_ptr<Linear> linear(const LinearShape& shape) override {
    return std::make_unique<SharedLinear>(
        shared(shape, linears_, [&] { return inner().linear(shape); }));
  }
  std::unique_ptr<Attention> attention(const AttentionShape& shape) override {
    return std::make_unique<SharedAttention>(
        shared(shape, attentions_, [&] { return inner().attention(shape); }));
  }

 private:
  template <class Shape, class Operator, class Make>
  static std::shared_ptr<Operator> shared(
      const Shape& shape, std::vector<std::pair<Shape, std::shared_ptr<Operator>>>& known,
      const Make& make) {
    for (const auto& [one, made] : known)
      if (one == shape) return made;
    return known.emplace_back(shape, make()).second;
  }
  std::vector<std::pair<LinearShape, std::shared_ptr<Linear>>> linears_;
  std::vector<std::pair<AttentionShape, std::shared_ptr<Attention>>> attentions_;
};

/// Everything that a rank's memory follows from, as numbers: equal keys, equal memory.
using MemoryKey = std::vector<std::size_t>;

void append_stages(const Layout& layout, const RowMemory& row, MemoryKey& key) {
  for (const int count :
       {row.inputs, row.outputs, row.output_grads, row.input_grads, row.frozen_outputs})
    key.push_back(static_cast<std::size_t>(count));
  int first = -1;
  for (const StageSlots& slots : row.stages) {
    const StagePlacement& at = layout.stage(slots.stage);
    const Pipeline& own =
        layout.pipelines[static_cast<std::size_t>(layout.pipeline_of(slots.stage))];
    // It reads the batch of these microbatches: how many, and how far from the first stage's.
    if (first < 0) first = own.first_microbatch;
    for (const int value : {at.first_unit, at.last_unit, slots.saved, slots.grads,
                            own.first_microbatch - first, own.microbatches()})
      key.push_back(static_cast<std::size_t>(value));
  }
}

/// Sums of gradients: what the rank's own tree needs; the rest of a bucket's nodes arrive.
void append_gradients(const Job& job, const Assignment& assignment, int rank, MemoryKey& key) {
  std::map<int, std::vector<int>> orders;  // unit -> microbatches of its weight gradients
  for (const Action& action : assignment.plan.rows[static_cast<std::size_t>(rank)]) {
    if (!makes_weight_gradient(action.kind)) continue;
    const StagePlacement& at = assignment.layout.stage(action.stage);
    for (int unit = at.first_unit; unit < at.last_unit; ++unit)
      orders[unit].push_back(action.microbatch);
  }
  std::map<std::vector<int>, std::pair<std::size_t, std::size_t>> known;
  for (const auto& [unit, order] : orders) {
    const auto [at, fresh] = known.try_emplace(order);
    if (fresh) {
      const GradientTree tree(order, assignment.microbatches(job), assignment.leaves(job));
      at->second = {static_cast<std::size_t>(tree.buffers()), tree.nodes().size()};
    }
    key.push_back(static_cast<std::size_t>(unit));
    key.push_back(at->second.first);
    key.push_back(at->second.second);
  }
}

void append_parts(const Assignment& assignment, int rank, bool whole_tensors, MemoryKey& key) {
  for (std::size_t b = 0; b < assignment.owners.size(); ++b) {
    const int owner = assignment.owners[b].index_of(rank);
    if (owner < 0) continue;
    const Part& part = assignment.owners[b].parts[static_cast<std::size_t>(owner)];
    key.push_back(b);
    key.push_back(part.count());
    if (whole_tensors) key.push_back(part.begin);  // which they are: what updates need follows
  }
}

/// The memory of single ranks of one run.
class RankPredictor {
 public:
  RankPredictor(const RunConfig& config, const Job& job, const Assignment& assignment, int threads)
      : config_(config),
        job_(job),
        assignment_(assignment),
        threads_(threads),
        model_(model_of(config)),
        optimizer_(optimizer_of(config)) {}

  RankMemory of(int rank) const {
    // A backend of its own: its operators are shared by the units of one rank.
    SharedOperators backend(make_sizing_backend(config_, threads_));
    return StepEngine(job_, assignment_, rank, stage_factory(*model_, backend), *optimizer_,
                      config_.optimizer.clip, backend)
        .memory();
  }

 private:
  const RunConfig& config_;
  const Job& job_;
  const Assignment& assignment_;
  int threads_;
  std::unique_ptr<Model> model_;
  std::unique_ptr<Optimizer> optimizer_;
};

}  // namespace

RankMemory predict_memory_of(int rank, const RunConfig& config, const Job& job,
                             const Assignment& assignment, int threads) {
  return RankPredictor(config, job, assignment, threads).of(rank);
}

std::vector<RankMemory> predict_memory(const RunConfig& config, const Job& job,
                                       const Assignment& assignment, int threads) {
  const std::vector<RowMemory> rows = plan_memory(assignment.plan, assignment.layout);
  const RankPredictor predictor(config, job, assignment, threads);
  std::map<MemoryKey, RankMemory> known;
  std::vector<RankMemory> result;
  for (int rank = 0; rank < assignment.world; ++rank) {
    MemoryKey key;
    append_stages(assignment.layout, rows[static_cast<std::size_t>(rank)], key);
    append_gradients(job, assignment, rank, key);
    append_parts(assignment, rank, job.whole_tensors, key);
    const auto [at, fresh] = known.try_emplace(std::move(key));
    if (fresh) at->second = predictor.of(rank);
    result.push_back(at->second);
  }
  return result;
}

std::size_t largest_total(const std::vector<RankMemory>& ranks) {
  std::size_t largest = 0;
  for (const RankMemory& memory : ranks) largest = std::max(largest, memory.total());
  return largest;
}

}  // namespace concertina
