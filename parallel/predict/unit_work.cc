#include "parallel/predict/unit_work.h"

#include <string>
#include <utility>

#include "core/index.h"

namespace concertina {
namespace {

constexpr double kLogitBytes = 8;  // a logit in fp32 and its gradient
constexpr double kLossBytes = 16;  // traffic of an fp32 loss per logit, in F and in I

bool can_recompute(const UnitCost& cost) {
  return cost.recompute_flops > 0;
}

/// Adds bytes that are split over the devices of a group.
void add_split(UnitCost& cost, double saved, double grads, double forward, double input) {
  const auto kept = static_cast<std::ptrdiff_t>(saved), later = static_cast<std::ptrdiff_t>(grads);
  cost.saved_bytes += kept, cost.split.saved_bytes += kept;
  cost.grad_bytes += later, cost.split.grad_bytes += later;
  cost.forward_moved += forward, cost.split.forward_moved += forward;
  cost.input_moved += input, cost.split.input_moved += input;
}

/// Bytes of attention scores that are kept in memory and that F moves: the output of softmax, and
/// of dropout with its mask.
struct ScoreBytes {
  double kept = 0, moved = 0;
  ScoreBytes(const UnitCost& cost, double element) {
    const double dropped = cost.dropped > 0 ? element + 1 : 0;
    kept = cost.scores * (element + dropped);
    moved = cost.scores * (2 * element + (dropped > 0 ? element + dropped : 0));
  }
};

/// Two passes of a ring: 2 (tp-1)/tp of the bytes pass through every device.
double group_seconds(const MachineModel& machine, double bytes, int tp) {
  if (tp == 1 || bytes == 0) return 0;
  return over(2 * bytes * (tp - 1) / tp, local_rate(machine)) +
         2 * (tp - 1) * machine.local.latency;
}

double share(double whole, double split, int tp) {
  return whole - split + split / tp;
}

/// A unit as implemented by a program, and how many bytes of its input it keeps.
struct Adapted {
  UnitCost cost;
  double input = 0;
};

/// Makes the layer keep only its input; the backward pass of its first unit recomputes the rest.
void recompute_layer(Adapted* first, const Adapted* end) {
  Adapted* head = nullptr;
  for (Adapted* unit = first; unit != end; ++unit) {
    UnitCost& cost = unit->cost;
    if (!can_recompute(cost)) continue;
    cost.recompute_flops = cost.forward_flops;
    if (head != nullptr) {
      head->cost.grad_bytes += cost.saved_bytes + static_cast<std::size_t>(unit->input);
      head->cost.split.grad_bytes += cost.split.saved_bytes;
      cost.saved_bytes = cost.split.saved_bytes = 0;
      unit->input = 0;
    } else {
      head = unit;
    }
    cost = recomputed(cost);
  }
}

void recompute(const PlanProblem& problem, Recompute what, std::vector<Adapted>& units) {
  const bool unfused = problem.software.unfused;
  if (what == Recompute::full && unfused) {
    int first = 0;
    for (const int end : problem.model.layer_ends)
      recompute_layer(units.data() + std::exchange(first, end), units.data() + end);
    return;
  }
  for (Adapted& unit : units) {
    UnitCost& cost = unit.cost;
    if (!can_recompute(cost) || (what == Recompute::selective && cost.scores == 0)) continue;
    if (unfused) {
      const ScoreBytes bytes(cost, problem.element());
      add_split(cost, -bytes.kept, bytes.kept, 0, bytes.moved);
      cost.input_flops += 2 * cost.full_score_flops;
    } else {
      cost = recomputed(cost);
    }
  }
}

std::vector<HeldParameters> held_parameters(const ModelSpec& model, int tp) {
  std::vector<HeldParameters> all(model.units.size());
  std::map<std::string, std::size_t> shared;  // index in `all`
  for (int u = 0; u < std::ssize(model.units); ++u) {
    all[at(u)].units = {u};
    for (const ParameterSpec& parameter : model.units[at(u)].parameters) {
      if (parameter.shared.empty()) {
        all[at(u)].elements += share_of(parameter, tp);
        continue;
      }
      const auto [place, fresh] = shared.try_emplace(parameter.shared, all.size());
      if (fresh) all.push_back({.elements = share_of(parameter, tp)});
      all[place->second].units.push_back(u);
    }
  }
  return all;
}

/// `plain` and `cost` are a device's share of the unit, without and with recomputation.
void add_seconds(const PlanProblem& problem, const UnitSpec& unit, const UnitCost& plain,
                 const UnitCost& cost, int tp, ModelWork& all) {
  const MachineModel& machine = problem.machine;
  double held = 0;
  for (const ParameterSpec& parameter : unit.parameters) held += share_of(parameter, tp);
  const double sums = 2 * held * (problem.bytes().gradient + problem.element());
  const UnitCost extra{.input_flops = cost.input_flops - plain.input_flops,
                       .recompute_flops = cost.recompute_flops,
                       .input_moved = cost.input_moved - plain.input_moved};
  const double again = seconds_on(machine, extra, 0).input;
  const double forward_sum = group_seconds(machine, cost.forward_sum, tp),
               input_sum = group_seconds(machine, cost.input_sum, tp);
  UnitSeconds& seconds = all.seconds.emplace_back(seconds_on(machine, plain, sums));
  seconds.forward += forward_sum;
  seconds.input += again + input_sum;
  all.again += again;
  all.group += forward_sum + input_sum;
}

ModelWork work_of(const PlanProblem& problem, const PlanCandidate& candidate) {
  const int tp = candidate.tp, samples = candidate.samples;
  const auto boundary = static_cast<double>(problem.model.boundary_bytes);
  std::vector<Adapted> units;
  for (const UnitSpec& unit : problem.model.units)
    units.push_back(
        {cost_by(problem.software, unit.cost, problem.element()), units.empty() ? 0 : boundary});
  const std::vector<Adapted> before = units;
  if (candidate.recompute != Recompute::none) recompute(problem, candidate.recompute, units);
  ModelWork all;
  all.parameters = held_parameters(problem.model, tp);
  for (std::size_t u = 0; u < units.size(); ++u) {
    const UnitCost plain = share_of(before[u].cost, tp, samples),
                   cost = share_of(units[u].cost, tp, samples);
    const auto grads = static_cast<double>(cost.grad_bytes);
    add_seconds(problem, problem.model.units[u], plain, cost, tp, all);
    all.recompute_flops += samples * (units[u].cost.input_flops - before[u].cost.input_flops);
    all.flops.push_back(total_flops(units[u].cost));
    const double input = samples * units[u].input;
    all.bytes.push_back(
        {.input = input,
         .saved = static_cast<double>(cost.saved_bytes) + input,
         .grads = grads + samples * before[u].input,
         // F of a separately recomputed unit needs scratch for what it does not keep.
         .scratch =
             grads + 2 * samples * boundary +
             (problem.software.unfused ? 0 : grads - static_cast<double>(plain.grad_bytes))});
  }
  return all;
}

}  // namespace

UnitCost cost_by(const Software& software, const UnitCost& cost, double element) {
  UnitCost own = cost;
  if (!software.unfused) return own;
  const ScoreBytes scores(own, element);
  add_split(own, scores.kept, 0, scores.moved, 2 * scores.moved);
  own.forward_flops += 2 * (own.full_score_flops - own.score_flops);
  own.input_flops += 4 * own.full_score_flops - 5 * own.score_flops;
  add_split(own, own.logits * (kLogitBytes - element), 0, own.logits * (kLossBytes - 3 * element),
            own.logits * kLossBytes);
  own.saved_bytes += static_cast<std::size_t>(own.dropped);  // masks
  own.forward_moved += own.dropped;
  own.input_moved += 2 * own.dropped;
  return own;
}

UnitCost share_of(const UnitCost& cost, int tp, int samples) {
  UnitCost own = cost;
  const double products = share(1, cost.split.flops, tp) * samples;
  for (double* flops :
       {&own.forward_flops, &own.input_flops, &own.weight_flops, &own.recompute_flops})
    *flops *= products;
  const auto bytes = [&](std::size_t whole, std::size_t split) {
    return static_cast<std::size_t>(
        samples * share(static_cast<double>(whole), static_cast<double>(split), tp));
  };
  own.saved_bytes = bytes(cost.saved_bytes, cost.split.saved_bytes);
  own.grad_bytes = bytes(cost.grad_bytes, cost.split.grad_bytes);
  own.forward_moved = samples * share(cost.forward_moved, cost.split.forward_moved, tp);
  own.input_moved = samples * share(cost.input_moved, cost.split.input_moved, tp);
  own.forward_sum *= samples;
  own.input_sum *= samples;
  return own;
}

double share_of(const ParameterSpec& parameter, int tp) {
  return static_cast<double>(parameter.count()) / (parameter.split ? tp : 1);
}

UnitSeconds seconds_on(const MachineModel& machine, const UnitCost& cost, double sums) {
  // A layer is two half-blocks; embedding and head launch few kernels.
  const double launch = can_recompute(cost) ? machine.device.layer_s / 2 : 0;
  const auto pass = [&](double flops, double moved) {
    if (flops == 0 && moved == 0) return 0.0;
    return over(flops, machine.flops_per_s) + over(moved, machine.device.memory_bytes_per_s) +
           launch;
  };
  return {.forward = pass(cost.forward_flops, cost.forward_moved),
          .input = pass(cost.input_flops, cost.input_moved),
          .weight = pass(cost.weight_flops, sums)};
}

std::vector<UnitSeconds> seconds_on(const MachineModel& machine, const ModelSpec& model,
                                    const std::vector<UnitCost>& costs) {
  const double element = static_cast<double>(size_of(model.activation));
  std::vector<UnitSeconds> units;
  for (std::size_t u = 0; u < costs.size(); ++u) {
    double elements = 0;
    for (const ParameterSpec& parameter : model.units[u].parameters)
      elements += costs[u].weight_flops > 0 ? share_of(parameter, 1) : 0;
    units.push_back(seconds_on(machine, costs[u], 2 * elements * (sizeof(float) + element)));
  }
  return units;
}

const ModelWork& WorkTable::of(const PlanCandidate& candidate) {
  const auto [known, fresh] =
      work_.try_emplace({candidate.tp, candidate.samples, candidate.recompute});
  if (fresh) known->second = work_of(problem_, candidate);
  return known->second;
}

const std::vector<UnitRange>& WorkTable::cuts(const PlanCandidate& candidate) {
  const auto [known, fresh] = cuts_.try_emplace({candidate.stages(), candidate.recompute});
  if (fresh)
    known->second = problem_.software.cuts == Cuts::units
                        ? partition(of(candidate).flops, candidate.stages())
                        : layer_cuts(problem_, candidate.stages());
  return known->second;
}

}  // namespace concertina
