#include "experiments/planner/pass_seconds.h"

#include <limits>

#include "core/index.h"
#include "experiments/planner/memory_model.h"
#include "experiments/planner/rates.h"

namespace concertina {

double local_rate(const MachineModel& machine) {
  const LinkCosts& local = machine.local;
  if (std::isfinite(local.bandwidth)) return local.bandwidth;
  return local.receive_cpu > 0 ? 1 / local.receive_cpu : std::numeric_limits<double>::infinity();
}

double element_bytes(const RunConfig& config) {
  return is_16_bit(config) ? 2 : 4;
}

double boundary_bytes(const RunConfig& config, int samples) {
  return element_bytes(config) * samples * config.model.context * config.model.width;
}

namespace {

/// Bytes that a layer's forward pass reads and writes besides its products, of 16-bit activations:
/// s b h (22 + 28/tp) for two norms (4 + 4), two dropouts with their residual sums (7 + 7), GELU
/// with bias (16/tp) and the split and merge of heads (12/tp); with scores in memory 9 a s^2 b/tp
/// more: softmax reads and writes 4, dropout 5. A backward pass moves twice that.
double moved_bytes(const PlanProblem& problem, int tp, int samples) {
  const ModelSection& model = problem.config.model;
  const double rows = static_cast<double>(model.context) * samples;
  const double scores =
      problem.software.keeps_scores ? 9.0 * model.heads * model.context * rows / tp : 0;
  return (is_16_bit(problem.config) ? 1 : 2) * (rows * model.width * (22 + 28.0 / tp) + scores);
}

/// Two all-reduces, each a ring: 2 (tp-1)/tp of the activations past every device.
double group_seconds(const PlanProblem& problem, int tp, int samples) {
  if (tp == 1) return 0;
  const double bytes = 2 * boundary_bytes(problem.config, samples) * 2 * (tp - 1) / tp;
  return over(bytes, local_rate(problem.machine)) + 4 * (tp - 1) * problem.machine.local.latency;
}

/// Adding a microbatch's weight gradients to those before it: both are read, and both written.
double added_seconds(const PlanProblem& problem, double parameters) {
  const double sums = is_16_bit(problem.config) ? problem.software.gradient_bytes_16
                                                : problem.software.gradient_bytes_32;
  return over(parameters * 2 * (sums + element_bytes(problem.config)),
              problem.machine.device.memory_bytes_per_s);
}

}  // namespace

PassSeconds layer_seconds(const PlanProblem& problem, int tp, int samples, Recompute recompute) {
  const MachineModel& machine = problem.machine;
  const ForwardFlops flops = forward_flops(problem.config.model);
  const double rate = machine.flops_per_s * tp / samples;
  const double products = flops.products / rate, attention = flops.attention / rate;
  const double moved = over(moved_bytes(problem, tp, samples), machine.device.memory_bytes_per_s);
  const double group = group_seconds(problem, tp, samples);
  const double launch = machine.device.layer_s;
  PassSeconds pass;
  pass.forward = products + attention + moved + group + launch;
  pass.input = products + 2 * attention + 2 * moved + group + launch;
  pass.weight =
      products + launch + added_seconds(problem, layer_parameters(problem.config.model, tp));
  pass.group = 2 * group;
  if (recompute == Recompute::full) {
    pass.again = pass.forward;
    pass.group += group;
  } else if (recompute == Recompute::selective) {
    const ModelSection& model = problem.config.model;
    const double scores = 9.0 * model.heads * model.context * model.context * samples / tp;
    pass.again = attention + over(scores, machine.device.memory_bytes_per_s);
  }
  pass.input += pass.again;
  return pass;
}

/// The head's products, and its loss: logits of 16 and 32 bits written and read, forth and back.
PassSeconds head_seconds(const PlanProblem& problem, int tp, int samples) {
  const ModelSection& model = problem.config.model;
  const double product = forward_flops(model).head * samples / (problem.machine.flops_per_s * tp);
  const double rows = static_cast<double>(samples) * model.context;
  const double loss = over(16 * rows * model.vocab / tp, problem.machine.device.memory_bytes_per_s);
  return {.forward = product + loss,
          .input = product + loss,
          .weight = product + added_seconds(problem, embedding_parameters(model, tp))};
}

std::vector<int> layers_of(const PlanProblem& problem, const PlanCandidate& candidate) {
  const double layer =
      layer_seconds(problem, candidate.tp, candidate.samples, candidate.recompute).total();
  return layers_by_stage(problem.config.model.layers, candidate.stages(),
                         problem.software.equal_layers,
                         head_seconds(problem, candidate.tp, candidate.samples).total() / layer);
}

}  // namespace concertina
