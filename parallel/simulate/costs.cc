#include "parallel/simulate/costs.h"

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

double Costs::seconds(const Action& action) const {
  const StageCosts& stage = stages[static_cast<std::size_t>(action.stage)];
  if (action.kind == Kind::F) return stage.forward;
  if (action.kind == Kind::I) return stage.input;
  if (action.kind == Kind::W) return stage.weight;
  return stage.input + stage.weight + stage.fused;
}

Costs unit_costs(const Layout& layout) {
  Costs costs;
  costs.stages.resize(static_cast<std::size_t>(layout.stage_count()));
  return costs;
}

}  // namespace concertina
