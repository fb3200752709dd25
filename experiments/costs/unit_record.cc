#include "experiments/costs/unit_record.h"

#include "core/error.h"

namespace concertina {

UnitRecord::UnitRecord(const ModelSpec& model)
    : model_(model), flops_(training_costs(model, 0)), known_(model.units.size()) {}

void UnitRecord::add(const std::vector<UnitSeconds>& seen, int frozen) {
  CONCERTINA_CHECK(seen.size() == known_.size(), "seconds of {} units of {}", seen.size(),
                   known_.size());
  const std::vector<UnitCost> then = training_costs(model_, frozen);
  // As it would be with all of its FLOPs: a tensor shared with a frozen unit has no gradient.
  const auto take = [](double& known, double seconds, double all, double done) {
    if (seconds > 0 && (done > 0 || all == 0)) known = all > 0 ? seconds * all / done : seconds;
  };
  for (std::size_t u = 0; u < seen.size(); ++u) {
    take(known_[u].forward, seen[u].forward, 0, 0);
    take(known_[u].input, seen[u].input, flops_[u].input_flops, then[u].input_flops);
    take(known_[u].weight, seen[u].weight, flops_[u].weight_flops, then[u].weight_flops);
    take(known_[u].pack, seen[u].pack, 0, 0);
  }
}

std::vector<UnitSeconds> UnitRecord::full() const {
  double seconds = 0, flops = 0;
  const auto count = [&](double known, double own) {
    if (known <= 0) return;
    seconds += known;
    flops += own;
  };
  for (std::size_t u = 0; u < known_.size(); ++u) {
    count(known_[u].forward, flops_[u].forward_flops);
    count(known_[u].input, flops_[u].input_flops);
    count(known_[u].weight, flops_[u].weight_flops);
  }
  const double per_flop = flops > 0 ? seconds / flops : 0;
  std::vector<UnitSeconds> full = known_;
  for (std::size_t u = 0; u < full.size(); ++u) {
    if (full[u].forward <= 0) full[u].forward = flops_[u].forward_flops * per_flop;
    if (full[u].input <= 0) full[u].input = flops_[u].input_flops * per_flop;
    if (full[u].weight <= 0) full[u].weight = flops_[u].weight_flops * per_flop;
  }
  return full;
}

}  // namespace concertina
