// Computes the share of weight gradients that each stage should skip to minimize the duration of a
// step, after TimelyFreeze (2602.05754, 2026), by a linear program over the plan's critical paths.
// Invariant: pure; never slower than without skips.
#pragma once

#include <optional>
#include <vector>

#include "parallel/plan/schedule.h"
#include "parallel/simulate/costs.h"

namespace concertina {

/// Maximize sum_j gain[j] x[j] subject to sum_j row[i][j] x[j] <= limit[i] for each i, and x >= 0.
/// Limits are >= 0, so x = 0 is feasible.
struct LinearProgram {
  std::vector<std::vector<double>> rows;  // each as long as `gain`
  std::vector<double> limit, gain;
};

/// Returns the price of each row at the optimum (the gain per unit of its limit), or nothing if the
/// gain is unbounded. Prices solve the dual program: minimize limit . y subject to rows . y >= gain
/// for each column, and y >= 0. For dense programs with a few hundred rows and columns with values
/// around 1. The simplex perturbs each limit by about 1e-8, because degenerate rows make it cycle
/// or divide by rounding errors. So limit . y exceeds its minimum by up to 1e-8 sum y.
std::optional<std::vector<double>> row_prices(const LinearProgram& program);

struct WeightSkips {
  /// The skipped fraction of W's time, by stage of the layout, in [0, most]. Equal for the stages
  /// of a group.
  std::vector<double> share;
  double before = 0, after = 0;  // makespan without and with skips from simulate(), in seconds
  /// A lower bound on the makespan for any shares, within 1e-6, if ranks do not share links between
  /// hosts (with shared links, the simulation is more than a longest path).
  double bound = 0;
};

/// Returns the group of each stage, numbered from 0 in the order of units. Stages with common
/// units, such as those of replicas, are in the same group.
std::vector<int> stage_groups(const Layout& layout);

/// With skips, W (alone or as part of B) takes 1 - share of its time. The makespan is the longest
/// path of the plan, and each path is linear in the shares. The minimum is found by cutting planes,
/// each one the critical path of a simulation. Of all shares with that makespan, those with the
/// smallest sum are returned, so stages that are never critical keep all gradients. `plan` must
/// pass check(). `most` is the maximum share by stage, from 0 to 1; the lowest one in a group
/// applies to all its stages.
WeightSkips skip_weights(const Plan& plan, const Layout& layout, const Costs& costs,
                         const std::vector<double>& most);

}  // namespace concertina
