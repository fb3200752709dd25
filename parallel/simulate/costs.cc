#include "parallel/simulate/costs.h"

#include <algorithm>
#include <cmath>
#include <initializer_list>

namespace concertina {

StageCosts stage_costs(double forward, double input, double weight, double backward) {
  StageCosts costs{.forward = forward, .input = input, .weight = weight};
  if (backward == 0) return costs;
  if (input == 0) costs.input = backward;
  costs.fused = backward - costs.input - costs.weight;
  return costs;
}

bool Costs::is_remote(int from, int to) const {
  if (hosts.empty()) return false;
  return hosts[static_cast<std::size_t>(from)] != hosts[static_cast<std::size_t>(to)];
}

const LinkCosts& Costs::link(int from, int to) const {
  const auto own = pairs.find({from, to});
  if (own != pairs.end()) return own->second;
  return is_remote(from, to) ? remote : local;
}

bool Costs::has_copies() const {
  const auto is_copy = [](const LinkCosts& link) {
    return std::isinf(link.bandwidth) && link.send_cpu + link.receive_cpu > 0;
  };
  return is_copy(local) || is_copy(remote) ||
         std::any_of(pairs.begin(), pairs.end(), [&](auto& pair) { return is_copy(pair.second); });
}

double Costs::seconds(const Action& action) const {
  const StageCosts& stage = stages[static_cast<std::size_t>(action.stage)];
  if (action.kind == Kind::F) return stage.forward;
  if (action.kind == Kind::I) return stage.input;
  if (action.kind == Kind::W) return stage.weight;
  return stage.input + stage.weight + stage.fused;
}

void Costs::take_latency_alone(double latency) {
  latency_alone = true;
  post = 0;
  local = remote = {.latency = latency};
  hosts.clear();
  pairs.clear();
}

bool Costs::is_finite() const {
  const auto finite = [](std::initializer_list<double> values) {
    return std::all_of(values.begin(), values.end(), [](double v) { return std::isfinite(v); });
  };
  const auto link = [&](const LinkCosts& one) {
    return finite({one.latency, one.send_cpu, one.receive_cpu}) && one.bandwidth > 0 &&
           one.eager_bytes >= 0;
  };
  return finite({boundary_bytes, post, combine}) && link(local) && link(remote) &&
         std::all_of(pairs.begin(), pairs.end(), [&](auto& pair) { return link(pair.second); }) &&
         std::all_of(stages.begin(), stages.end(),
                     [&](const StageCosts& one) {
                       return finite({one.forward, one.input, one.weight, one.fused});
                     }) &&
         std::all_of(ranks.begin(), ranks.end(), [&](const RankCosts& one) {
           return finite({one.load, one.norm, one.update, one.refresh});
         });
}

Costs unit_costs(const Layout& layout) {
  Costs costs;
  costs.stages.resize(static_cast<std::size_t>(layout.stage_count()));
  return costs;
}

}  // namespace concertina
