#include "experiments/planner/memory_model.h"

#include <algorithm>
#include <cmath>

#include "core/index.h"
#include "parallel/generate/schedule_registry.h"
#include "parallel/plan/layout.h"

namespace concertina {
namespace {

/// What is held once more while it is used: one layer's activations in full, where its backward
/// pass computes them again.
double working_bytes(const ModelSection& model, const Software& software,
                     const PlanCandidate& candidate, bool half) {
  if (candidate.recompute == Recompute::none) return 0;
  return activation_bytes(model, software, candidate.tp, candidate.samples, Recompute::none, half) -
         activation_bytes(model, software, candidate.tp, candidate.samples, candidate.recompute,
                          half);
}

/// What the last stage keeps: inputs of norm and head (2 bytes each in 16 bits), fp32 logits and
/// their gradient.
double head_bytes(const ModelSection& model, const PlanCandidate& candidate, bool half) {
  const double rows = static_cast<double>(candidate.samples) * model.context;
  return rows * ((half ? 4.0 : 8.0) * model.width + 8.0 * model.vocab / candidate.tp);
}

struct RankLoad {
  int layers = 0, most = 0;  // of all its stages; of its largest stage
  bool first = false, last = false;
};

std::vector<RankLoad> rank_loads(const PlanCandidate& candidate, const std::vector<int>& layers) {
  const Placement placement = find_schedule(candidate.schedule).value.placement;
  std::vector<RankLoad> loads(at(candidate.pp));
  for (int stage = 0; stage < candidate.stages(); ++stage) {
    RankLoad& load = loads[at(rank_of_stage(placement, stage, candidate.pp))];
    load.layers += layers[at(stage)];
    load.most = std::max(load.most, layers[at(stage)]);
    load.first |= stage == 0;
    load.last |= stage == candidate.stages() - 1;
  }
  return loads;
}

}  // namespace

bool is_16_bit(const RunConfig& config) {
  return config.numerics.compute == "bf16" || config.numerics.compute == "fp8";
}

double activation_bytes(const ModelSection& model, const Software& software, int tp, int samples,
                        Recompute recompute, bool is_16_bit) {
  const double sbh = static_cast<double>(model.context) * samples * model.width;
  const double scale = is_16_bit ? 1 : 2;
  if (recompute == Recompute::full) return 2 * sbh * scale;
  const bool scores = software.keeps_scores && recompute == Recompute::none;
  return scale * sbh *
         (10 + 24.0 / tp +
          (scores ? 5.0 * model.heads * model.context / (static_cast<double>(model.width) * tp)
                  : 0));
}

double layer_parameters(const ModelSection& model, int tp) {
  const double h = model.width;
  return 12 * h * h * (1 + 13 / (12 * h)) / tp;
}

double embedding_parameters(const ModelSection& model, int tp) {
  return (static_cast<double>(model.vocab) + model.context) * model.width / tp;
}

std::vector<int> layers_by_stage(int layers, int stages, bool equal, double head_layers) {
  if (equal || stages == 1) return std::vector<int>(at(stages), layers / stages);
  const int others = stages - 1;
  int last = 1;
  double least = INFINITY;
  for (int n = 0; n <= layers / stages; ++n) {
    const int rest = layers - n, most = (rest + others - 1) / others;
    const double worst = std::max(static_cast<double>(most), n + head_layers);
    if (rest >= others && worst <= least) {
      least = worst;
      last = n;
    }
  }
  // Those that have one more are late in the pipeline, where fewer microbatches wait.
  const int rest = layers - last;
  std::vector<int> result(at(stages), rest / others);
  for (int i = 0; i < rest % others; ++i) ++result[at(others - 1 - i)];
  result.back() = last;
  return result;
}

std::vector<int> promised_peaks(const PlanCandidate& candidate, int microbatches) {
  const int p = candidate.pp;
  std::vector<int> peaks;
  const auto claim =
      find_schedule(candidate.schedule).value.peak.at(p, microbatches, candidate.chunks);
  if (!claim) return peaks;
  const int most = static_cast<int>(claim->value);
  for (int rank = 0; rank < p; ++rank)
    peaks.push_back(candidate.schedule == "1f1b" ? std::min(microbatches, p - rank) : most);
  return peaks;
}

PlanMemory plan_memory_of(const RunConfig& config, const Software& software,
                          const MachineModel& machine, const PlanCandidate& candidate,
                          const std::vector<int>& layers, const std::vector<int>& peak) {
  const ModelSection& model = config.model;
  const bool half = is_16_bit(config);
  const double kept =
      activation_bytes(model, software, candidate.tp, candidate.samples, candidate.recompute, half);
  // One for each microbatch of a stage that is under way.
  const double output = software.keeps_outputs
                            ? activation_bytes(model, software, candidate.tp, candidate.samples,
                                               Recompute::full, half)
                            : 0;
  const double received = software.received_bytes * (candidate.dp - 1.0) / candidate.dp;
  const double per_weight =
      received + (half ? software.weight_bytes_16 + software.gradient_bytes_16
                       : software.weight_bytes_32 + software.gradient_bytes_32);
  const double per_state = (half ? software.optimizer_bytes_16 : software.optimizer_bytes_32) /
                           (software.sharded ? candidate.dp : 1);
  const std::vector<RankLoad> loads = rank_loads(candidate, layers);
  PlanMemory largest;
  for (int rank = 0; rank < candidate.pp; ++rank) {
    const RankLoad& load = loads[at(rank)];
    const double parameters =
        load.layers * layer_parameters(model, candidate.tp) +
        (load.first || load.last ? embedding_parameters(model, candidate.tp) : 0);
    PlanMemory mine{
        .weights = parameters * per_weight,
        .optimizer = parameters * per_state,
        .activations = peak[at(rank)] * (output + kept * load.layers / candidate.chunks),
        .reserved = machine.device.reserved_bytes};
    mine.activations += working_bytes(model, software, candidate, half);
    if (load.last) mine.activations += head_bytes(model, candidate, half);
    if (mine.total() > largest.total()) largest = mine;
  }
  return largest;
}

}  // namespace concertina
