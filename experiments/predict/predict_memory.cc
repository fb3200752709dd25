#include "experiments/predict/predict_memory.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "core/backend_around.h"
#include "core/text/number_text.h"
#include "experiments/config/schedule_file.h"
#include "experiments/run/checkpoint_writer.h"
#include "experiments/run/devices.h"
#include "experiments/run/planning.h"
#include "experiments/run/trainer.h"
#include "parallel/plan/plan_index.h"
#include "parallel/plan/plan_memory.h"
#include "parallel/runtime/gradient_tree.h"

namespace concertina {
namespace {

struct Candidate {
  int pp = 0, dp = 0, microbatches = 0;
  std::size_t bytes = 0;  // of the largest rank
  std::string schedule;   // replaces a schedule file, which fits only one layout
};

/// All grids with this world size and number of microbatches.
std::vector<Candidate> grids(RunConfig config, int world, int threads, int microbatches) {
  config.batch.microbatches = microbatches;
  config.parallel.layout = {};
  std::string schedule;
  if (is_schedule_file(config.parallel.schedule))
    schedule = config.parallel.schedule = ParallelSection{}.schedule;
  const Job job = job_of(config);
  const LayoutLimits limits{.world = world - config.parallel.spare,
                            .units = job.units(),
                            .microbatches = microbatches,
                            .leaves = job.leaves};
  std::vector<Candidate> result;
  for (const Grid& grid : fitting_grids(limits, folding_of(request_of(config, world)))) {
    config.parallel.pp = grid.pp;
    config.parallel.dp = grid.dp;
    const std::size_t bytes =
        largest_total(predict_memory(config, job, assignment_of(config, job, world), threads));
    result.push_back({grid.pp, grid.dp, microbatches, bytes, schedule});
  }
  return result;
}

std::string text(const Candidate& candidate, int microbatches) {
  std::string change = fmt::format("parallel.pp={} parallel.dp={}", candidate.pp, candidate.dp);
  if (candidate.microbatches != microbatches)
    change += fmt::format(" batch.microbatches={}", candidate.microbatches);
  if (!candidate.schedule.empty())
    change += fmt::format(" parallel.schedule={}", candidate.schedule);
  return fmt::format("{} ({} per rank)", change, gib_text(candidate.bytes));
}

/// Creates one operator per shape: a rank may have a thousand layers.
class SharedOperators final : public BackendAround {
 public:
  using BackendAround::BackendAround;
  std::shared_ptr<Linear> linear(const LinearShape& shape) override {
    return shared(shape, linears_, [&] { return inner().linear(shape); });
  }
  std::shared_ptr<Attention> attention(const AttentionShape& shape) override {
    return shared(shape, attentions_, [&] { return inner().attention(shape); });
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

/// All numbers on which a rank's memory depends: ranks with equal keys need equal memory.
using MemoryKey = std::vector<std::size_t>;

/// The stages of a layout by number.
struct Stages {
  explicit Stages(const Layout& layout) : at(layout.stages()), infos(stage_infos(layout)) {}
  std::vector<StagePlacement> at;
  std::vector<StageInfo> infos;
};

void append_stages(const Stages& stages, const RowMemory& row, MemoryKey& key) {
  for (const int count :
       {row.inputs, row.outputs, row.output_grads, row.input_grads, row.frozen_outputs})
    key.push_back(static_cast<std::size_t>(count));
  int first = -1;
  for (const StageSlots& slots : row.stages) {
    const StagePlacement& at = stages.at[static_cast<std::size_t>(slots.stage)];
    const StageInfo& own = stages.infos[static_cast<std::size_t>(slots.stage)];
    // A stage's batch depends on the number of its microbatches and offset from the first stage's.
    if (first < 0) first = own.first_microbatch;
    for (const int value :
         {at.first_unit, at.last_unit, slots.saved, slots.grads, own.first_microbatch - first,
          own.last_microbatch - own.first_microbatch})
      key.push_back(static_cast<std::size_t>(value));
  }
}

/// Appends the sizes of the rank's gradient trees; other ranks send the other nodes of a bucket.
void append_gradients(const Job& job, const Assignment& assignment, const Stages& stages, int rank,
                      MemoryKey& key) {
  std::map<int, std::vector<int>> orders;  // unit -> microbatches of its weight gradients
  for (const Action& action : assignment.plan.rows[static_cast<std::size_t>(rank)]) {
    if (!makes_weight_gradient(action.kind)) continue;
    const StagePlacement& at = stages.at[static_cast<std::size_t>(action.stage)];
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
    if (whole_tensors) key.push_back(part.begin);  // the scratch depends on which tensors
  }
}

/// Returns a function that maps a rank of the run to its memory; the arguments must outlive it.
auto rank_predictor(const RunConfig& config, const Job& job, const Assignment& assignment,
                    int threads) {
  return [&, threads, model = model_of(config), optimizer = optimizer_of(config)](int rank) {
    // A separate backend: its operators are shared by the units of one rank.
    SharedOperators backend(make_sizing_backend(config, threads));
    return StepEngine(job, assignment, rank, stage_factory(*model, backend), *optimizer,
                      config.optimizer.clip, backend)
        .memory();
  };
}

}  // namespace

// Tries the smallest changes first: another grid, then also smaller microbatches.
std::string what_fits(const RunConfig& config, int world, int threads, std::size_t available) {
  std::optional<Candidate> least;
  const int given = config.batch.microbatches;
  for (int microbatches = given; config.batch.global % microbatches == 0; microbatches *= 2) {
    std::vector<std::string> fitting;
    for (const Candidate& candidate : grids(config, world, threads, microbatches)) {
      if (candidate.bytes <= available) fitting.push_back(text(candidate, given));
      if (!least || candidate.bytes < least->bytes) least = candidate;
    }
    if (!fitting.empty()) return fmt::format("layouts that fit: {}", fmt::join(fitting, "; "));
  }
  if (!least) return "no pp x dp with this world size fits the model";
  return fmt::format("no layout of {} fits (the smallest is {}): use more ranks or a smaller model",
                     counted(world, "rank"), text(*least, given));
}

std::vector<std::string> memory_advice(const RunConfig& config, int threads,
                                       const std::vector<RankMemory>& memory,
                                       const MemoryBytes& machine) {
  const std::size_t largest = largest_total(memory), available = machine.available;
  if (largest > available)
    return {fmt::format("the largest rank needs {}, but {} has {} free; {}", gib_text(largest),
                        machine.name, gib_text(available),
                        what_fits(config, static_cast<int>(memory.size()), threads, available))};
  const std::size_t all =
      std::accumulate(memory.begin(), memory.end(), std::size_t{0},
                      [](std::size_t sum, const RankMemory& rank) { return sum + rank.total(); });
  if (all <= available) return {};
  return {fmt::format("all {} ranks need {}, but {} has {} free: at most {} of them fit",
                      memory.size(), gib_text(all), machine.name, gib_text(available),
                      available / largest)};
}

RankMemory predict_memory_of(int rank, const RunConfig& config, const Job& job,
                             const Assignment& assignment, int threads) {
  return rank_predictor(config, job, assignment, threads)(rank);
}

std::vector<RankMemory> predict_memory(const RunConfig& config, const Job& job,
                                       const Assignment& assignment, int threads,
                                       std::vector<int>* largest) {
  const std::vector<RowMemory> rows = plan_memory(assignment.plan, assignment.layout);
  const auto memory_of = rank_predictor(config, job, assignment, threads);
  const Stages stages(assignment.layout);
  std::map<MemoryKey, RankMemory> known;
  std::map<MemoryKey, int> most;  // rank by all numbers except the parts
  std::vector<RankMemory> result;
  for (int rank = 0; rank < assignment.world; ++rank) {
    MemoryKey key;
    append_stages(stages, rows[static_cast<std::size_t>(rank)], key);
    append_gradients(job, assignment, stages, rank, key);
    const auto one = most.try_emplace(key, rank).first;
    append_parts(assignment, rank, job.whole_tensors, key);
    if (job.whole_tensors) most.try_emplace(key, rank);  // parts also determine scratch
    const auto [at, fresh] = known.try_emplace(std::move(key));
    if (fresh) at->second = memory_of(rank);
    result.push_back(at->second);
    if (at->second.total() > result[static_cast<std::size_t>(one->second)].total())
      one->second = rank;
  }
  for (const auto& [key, rank] : most)
    if (largest != nullptr) largest->push_back(rank);
  return result;
}

std::size_t largest_total(const std::vector<int>& ranks, const RunConfig& config, const Job& job,
                          const Assignment& assignment, int threads) {
  const auto memory_of = rank_predictor(config, job, assignment, threads);
  std::size_t largest = 0;
  for (const int rank : ranks) largest = std::max(largest, memory_of(rank).total());
  return largest;
}

SaveMemory predict_save_memory(const RunConfig& config, const Job& job,
                               const Assignment& assignment) {
  const CheckpointSection& checkpoint = config.checkpoint;
  const std::uint64_t largest =
      std::ranges::max(state_bytes(assignment, state_kinds(job, *optimizer_of(config)).size()));
  return {.copy = checkpoint.every > 0 || !checkpoint.best.empty() ? largest : 0,
          .snapshots = checkpoint.snapshot_every >= 0 ? 2 * largest : 0};
}

std::size_t largest_total(const std::vector<RankMemory>& ranks) {
  std::size_t largest = 0;
  for (const RankMemory& memory : ranks) largest = std::max(largest, memory.total());
  return largest;
}

}  // namespace concertina
