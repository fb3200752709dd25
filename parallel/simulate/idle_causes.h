// Attributes the idle time of a measured step to causes.
// Invariants: pure; the causes of a rank add up to its idle time; a rank that waits for another one
// waits for the other's computation until it ends, and only then for the transfer.
#pragma once

#include <array>
#include <numeric>
#include <string_view>
#include <vector>

#include "parallel/plan/step_record.h"
#include "parallel/simulate/simulate.h"

namespace concertina {

enum class Cause {
  schedule,   // the plan's own bubble: equal stages, no variation, free transfers
  imbalance,  // different costs of the stages of a pipeline
  variation,  // varying durations of actions of the same kind and stage
  transfer,   // transfers of activations and gradients, and posting them
  reduction,  // gradients from other holders, and their addition
  optimizer,  // losses, norms and updated weights from other ranks
  other,      // data loading, late starts and bookkeeping
};
inline constexpr std::size_t kCauses = 7;
std::string_view name_of(Cause cause);

/// Seconds (or shares of a step) by cause.
struct IdleCauses {
  std::array<double, kCauses> by_cause{};
  double& operator[](Cause cause) { return by_cause[static_cast<std::size_t>(cause)]; }
  double operator[](Cause cause) const { return by_cause[static_cast<std::size_t>(cause)]; }
  double total() const { return std::accumulate(by_cause.begin(), by_cause.end(), 0.0); }
};

/// A step of all ranks on one clock, from the first start to the last end of any rank.
struct StepSpan {
  double start = 0, end = 0;
  double seconds() const { return end - start; }
};
StepSpan span_of(const std::vector<StepRecord>& ranks);

/// Returns `costs` with the stages of each pipeline set to their mean; if all replicas have the
/// same depth, to the mean of all stages, because the schedule does not make a replica slow.
Costs equal_stages(const Layout& layout, Costs costs);

/// Idle seconds of each rank with free transfers: with equal stages within each pipeline (their
/// mean) and with the actual costs.
struct ExpectedIdle {
  std::vector<double> equal, actual;
};
ExpectedIdle expected_idle(const Plan& plan, const Layout& layout, const Costs& costs);

/// Returns, by rank and wait, the time until which the rank waited for computation elsewhere. The
/// rest of the wait has its own cause (see cause_of()).
std::vector<std::vector<double>> computed_until(const Plan& plan, const Layout& layout,
                                                const std::vector<StepRecord>& ranks);

/// The cause of a wait after the computation: transfer, reduction or optimizer.
Cause cause_of(WaitFor what);

/// Returns the causes by rank. Waits for other ranks' computation count as schedule up to
/// `expected.equal`, then as imbalance up to `expected.actual`, then as variation.
std::vector<IdleCauses> idle_causes(const Plan& plan, const Layout& layout,
                                    const std::vector<StepRecord>& ranks,
                                    const ExpectedIdle& expected);

}  // namespace concertina
