// Which share of its weight gradients each stage leaves out so that a step ends earliest, after
// TimelyFreeze (2602.05754, 2026): a linear program over the plan's critical paths.
// Invariant: pure; never slower than without.
#pragma once

#include <optional>
#include <vector>

#include "parallel/plan/schedule.h"
#include "parallel/simulate/costs.h"

namespace concertina {

/// Maximise sum_j gain[j] x[j] where sum_j row[i][j] x[j] <= limit[i] for each i, and x >= 0.
/// Limits are >= 0, so x = 0 is allowed.
struct LinearProgram {
  std::vector<std::vector<double>> rows;  // each as long as `gain`
  std::vector<double> limit, gain;
};

/// The price of each row at the optimum: what one more of its limit would gain. They solve the dual
/// program: minimise limit . y where, for each column, rows . y >= gain, and y >= 0. Nothing if the
/// gain has no bound. For dense programs of some hundred rows and columns with numbers around 1: a
/// simplex that raises each limit by another 1e-8 or so, since rows that bind at the same place
/// make it cycle, or divide by rounding errors. So limit . y is off its least value by 1e-8 sum y.
std::optional<std::vector<double>> row_prices(const LinearProgram& program);

struct WeightSkips {
  /// The share of the time of W that is left out, by stage of the layout, in [0, most]. Stages of a
  /// group have the same share.
  std::vector<double> share;
  double before = 0, after = 0;  // makespan without and with them, in seconds, as simulate() says
  /// No shares make the step faster than this, within 1e-6, where ranks do not share links between
  /// hosts (those make the simulator more than a longest path).
  double bound = 0;
};

/// The number of each stage's group, from 0 in the order of the units: stages that have units in
/// common, such as those of replicas, are in one.
std::vector<int> stage_groups(const Layout& layout);

/// W takes 1 - share of its time, and with it B. The makespan is the longest of the plan's paths,
/// each of them linear in the shares: cutting planes find the least one, each plane being the
/// critical path that the simulator names. Of all shares with that makespan the ones with the least
/// sum are taken, so a stage that is never critical keeps all its gradients. `plan` must pass
/// check(). `most`: the largest share, by stage, from 0 to 1; of a group's stages the least counts.
WeightSkips skip_weights(const Plan& plan, const Layout& layout, const Costs& costs,
                         const std::vector<double>& most);

}  // namespace concertina
