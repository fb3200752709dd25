#include "parallel/predict/cost_record.h"

#include <algorithm>
#include <utility>

#include "core/error.h"

namespace concertina {

CostRecord::CostRecord(const ModelSpec& model)
    : model_(model), flops_(training_costs(model, 0)), known_(model.units.size()) {}

void CostRecord::add(const StepCosts& seen, int frozen) {
  CONCERTINA_CHECK(seen.units.size() == known_.size(), "seconds for {} of {} units",
                   seen.units.size(), known_.size());
  if (std::ranges::none_of(seen.units, [](const UnitSeconds& one) { return one.forward > 0; }))
    return;  // no step yet
  const std::vector<UnitCost> then = training_costs(model_, frozen);
  // Scales to all FLOPs of the unit: a tensor shared with a frozen unit has no gradient.
  const auto take = [](double& known, double seconds, double all, double done) {
    if (seconds > 0 && (done > 0 || all == 0)) known = all > 0 ? seconds * all / done : seconds;
  };
  for (std::size_t u = 0; u < known_.size(); ++u) {
    const UnitSeconds& one = seen.units[u];
    const bool is_frozen = static_cast<int>(u) < frozen;
    take(is_frozen ? known_[u].frozen : known_[u].forward, one.forward, 0, 0);
    take(known_[u].input, one.input, flops_[u].input_flops, then[u].input_flops);
    take(known_[u].weight, one.weight, flops_[u].weight_flops, then[u].weight_flops);
    take(known_[u].pack, one.pack, 0, 0);
  }
  const MachineModel before = std::exchange(machine_, seen.machine);
  for (std::size_t rank = 0; rank < machine_.factors.size(); ++rank)
    if (machine_.factors[rank] == 0)
      machine_.factors[rank] = rank_factor(before, static_cast<int>(rank));
  if (seen.trained_elements >= most_trained_) {
    most_trained_ = seen.trained_elements;
    return;
  }
  machine_.norm_s_per_element = before.norm_s_per_element;
  machine_.update_s_per_element = before.update_s_per_element;
}

bool CostRecord::complete() const {
  for (std::size_t u = 0; u < known_.size(); ++u) {
    const UnitSeconds& one = known_[u];
    const UnitCost& own = flops_[u];
    if ((one.forward <= 0 && one.frozen <= 0) || (own.input_flops > 0 && one.input <= 0) ||
        (own.weight_flops > 0 && one.weight <= 0))
      return false;
  }
  return true;
}

std::vector<UnitSeconds> CostRecord::full() const {
  double seconds = 0, flops = 0, frozen = 0, of = 0;
  const auto count = [&](double known, double own) {
    if (known <= 0) return;
    seconds += known;
    flops += own;
  };
  for (std::size_t u = 0; u < known_.size(); ++u) {
    count(known_[u].forward, flops_[u].forward_flops);
    count(known_[u].input, flops_[u].input_flops);
    count(known_[u].weight, flops_[u].weight_flops);
    if (known_[u].forward <= 0 || known_[u].frozen <= 0) continue;
    frozen += known_[u].frozen;
    of += known_[u].forward;
  }
  const double per_flop = flops > 0 ? seconds / flops : 0;
  std::vector<UnitSeconds> full = known_;
  for (std::size_t u = 0; u < full.size(); ++u) {
    if (full[u].forward <= 0) full[u].forward = full[u].frozen;
    if (full[u].frozen <= 0 && of > 0) full[u].frozen = full[u].forward * frozen / of;
    if (full[u].forward <= 0) full[u].forward = flops_[u].forward_flops * per_flop;
    if (full[u].input <= 0) full[u].input = flops_[u].input_flops * per_flop;
    if (full[u].weight <= 0) full[u].weight = flops_[u].weight_flops * per_flop;
  }
  return full;
}

}  // namespace concertina
