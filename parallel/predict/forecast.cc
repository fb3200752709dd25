#include "parallel/predict/forecast.h"

#include <algorithm>
#include <limits>
#include <set>
#include <utility>

#include "core/error.h"
#include "core/index.h"
#include "parallel/predict/move_costs.h"
#include "parallel/predict/plan_costs.h"
#include "parallel/simulate/shared_cores.h"
#include "parallel/simulate/simulate.h"

namespace concertina {
namespace {

/// Units of the shortest first stage: the most that every pipeline can read from the cache.
int shortest_start(const Layout& layout) {
  int shortest = std::numeric_limits<int>::max();
  for (const Pipeline& pipeline : layout.pipelines)
    shortest = std::min(shortest, pipeline.stages.front().last_unit);
  return shortest;
}

}  // namespace

std::vector<UnitSeconds> with_frozen_units(const ModelSpec& model, std::vector<UnitSeconds> seconds,
                                           int frozen, int before) {
  const std::vector<UnitCost> then = training_costs(model, before),
                              now = training_costs(model, frozen);
  for (std::size_t u = 0; u < seconds.size(); ++u) {
    UnitSeconds& unit = seconds[u];
    if (static_cast<int>(u) < frozen)
      unit = {.forward = unit.frozen > 0 ? unit.frozen : unit.forward};
    else if (then[u].weight_flops > 0)
      unit.weight *= now[u].weight_flops / then[u].weight_flops;
  }
  return seconds;
}

LayoutForecast::LayoutForecast(const Job& job, const Assignment& now, ForecastInput input)
    : job_(&job), now_(&now), input_(std::move(input)) {
  CONCERTINA_CHECK(std::ssize(input_.units) == job.units(), "seconds for {} of {} units",
                   input_.units.size(), job.units());
  std::vector<double> factors;
  for (int rank = 0; rank < now.world; ++rank) factors.push_back(factor(rank));
  std::ranges::sort(factors);
  for (const double factor : factors) speeds_.push_back(speeds_.back() + 1 / factor);
  if (input_.cores > 0)
    measured_ = shared(now, plan_costs(job, now, seconds(now.frozen_units(), 0), input_.machine));
}

LayoutForecast LayoutForecast::from(const Assignment& now) const {
  LayoutForecast other = *this;
  other.now_ = &now;
  return other;
}

double LayoutForecast::shared(const Assignment& assignment, const Costs& costs) const {
  return shared_core_factor(assignment.plan, assignment.layout, costs, input_.hosts, input_.cores);
}

/// Returns the training work with `frozen` frozen units. Cached, because a search calls it for each
/// layout.
const LayoutForecast::Trained& LayoutForecast::trained(int frozen) const {
  const auto [place, is_new] = trained_.try_emplace(frozen);
  Trained& trained = place->second;
  if (!is_new) return trained;
  trained.units = with_frozen_units(job_->model, input_.units, frozen);
  for (const Bucket& bucket : make_buckets(job_->model, frozen))
    if (!bucket.frozen)
      for (const BucketTensor& tensor : bucket.tensors)
        trained.elements += static_cast<double>(tensor.count);
  return trained;
}

/// Returns the seconds of each unit. Reads from the cache are charged to the first unit.
std::vector<UnitSeconds> LayoutForecast::seconds(int frozen, int cached) const {
  std::vector<UnitSeconds> units = trained(frozen).units;
  const double share = input_.cache.share;
  if (share == 0 || cached == 0) return units;
  for (int u = 0; u < cached; ++u) units[at(u)].forward *= 1 - share;
  units[0].forward +=
      share * input_.cache.read_s_per_sample * static_cast<double>(job_->model.samples);
  return units;
}

double LayoutForecast::step_seconds(const Assignment& assignment) const {
  return step_seconds(assignment, assignment.frozen_units());
}

double LayoutForecast::step_seconds(const Assignment& assignment, int cached) const {
  const int frozen = assignment.frozen_units();
  const int read = std::min({cached, frozen, shortest_start(assignment.layout)});
  const Costs costs = plan_costs(*job_, assignment, seconds(frozen, read), input_.machine);
  const double alone = simulate(assignment.plan, assignment.layout, costs).makespan;
  return alone * shared(assignment, costs) / measured_ / assignment.batches;
}

double LayoutForecast::least_seconds(int frozen_units, int ranks, int batches,
                                     std::optional<int> cached) const {
  double work = 0;
  for (const UnitSeconds& unit : seconds(frozen_units, cached.value_or(frozen_units)))
    work += unit.forward + unit.input + unit.weight;
  const MachineModel& machine = input_.machine;
  const double once = machine.load_s + trained(frozen_units).elements *
                                           (machine.norm_s_per_element + update_seconds(machine));
  const std::set<int> hosts(input_.hosts.begin(), input_.hosts.end());
  const int cores = input_.cores * std::max(1, static_cast<int>(hosts.size()));
  return (work * job_->microbatches + once / batches) / measured_ /
         (cores > 0 ? std::min(ranks, cores) : speed(ranks));
}

double LayoutForecast::speed(int ranks) const {
  const int known = std::min(ranks, static_cast<int>(std::ssize(speeds_)) - 1);
  return speeds_[at(known)] + ranks - known;
}

double LayoutForecast::likely_seconds(int frozen_units, const Grid& grid, int chunks) const {
  const MachineModel& machine = input_.machine;
  const int ranks = grid.pp * grid.dp, host = machine.ranks_per_host;
  const auto per_byte = [&](int side) {
    return seconds_per_byte(host > 0 && side > host ? machine.remote : machine.local);
  };
  const double microbatches = static_cast<double>(job_->microbatches) / grid.dp;
  const double stage = least_seconds(frozen_units, ranks) / microbatches;
  const double message =
      grid.pp > 1 ? 2 * static_cast<double>(job_->model.boundary_bytes) * per_byte(grid.pp) : 0;
  const double elements = trained(frozen_units).elements;
  // Each pair of ranks on a host has its own link; all share the host's link to other hosts.
  const double shares = host > 0 && ranks > host ? 1 : grid.dp;
  const double exchanged = grid.dp > 1 ? 2 * elements * sizeof(float) / grid.pp / shares : 0;
  return microbatches * std::max(stage, message) +
         (grid.pp * chunks - 1) * (stage / chunks + message) + exchanged * per_byte(ranks);
}

std::vector<double> LayoutForecast::unit_seconds(int frozen_units) const {
  std::vector<double> sums;
  for (const UnitSeconds& unit : seconds(frozen_units, frozen_units))
    sums.push_back(unit.forward + unit.input + unit.weight);
  return sums;
}

double LayoutForecast::move_seconds(const Assignment& next) const {
  const MovePlan plan = plan_moves(*now_, next, input_.kinds, input_.hosts, input_.move_memory);
  return predict_move(plan, input_.kinds, input_.machine).total();
}

double LayoutForecast::change_seconds(const Assignment& next) const {
  return next.layout == now_->layout && next.plan.rows == now_->plan.rows ? 0 : move_seconds(next);
}

std::string LayoutForecast::refusal(const Assignment& next) const {
  return input_.refusal ? input_.refusal(next) : "";
}

}  // namespace concertina
