// Why a rank did nothing: the bubble of a measured step, by cause.
// Invariants: pure; the causes of a rank add up to its idle time; whoever waits for a rank that is
// still computing waits for that computation, and only from its end on for the transfer.
#pragma once

#include <array>
#include <numeric>
#include <string_view>
#include <vector>

#include "parallel/plan/step_record.h"
#include "parallel/simulate/simulate.h"

namespace concertina {

enum class Cause {
  schedule,   // the plan's own bubble: equal stages, no variation, transfers that take no time
  imbalance,  // stages of one pipeline do not cost the same
  variation,  // actions of one kind and stage do not take the same time each time
  transfer,   // activations and gradients under way, and posting them
  reduction,  // gradients of other holders, and their addition
  optimizer,  // losses, norms and updated weights of other ranks
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

/// A step of all ranks on one clock lasts from the first start to the last end of any rank.
struct StepSpan {
  double start = 0, end = 0;
  double seconds() const { return end - start; }
};
StepSpan span_of(const std::vector<StepRecord>& ranks);

/// `costs` with all stages of a pipeline as long as their mean; of replicas of one depth, as the
/// mean of all: that one of them is slower is not the schedule's doing.
Costs equal_stages(const Layout& layout, Costs costs);

/// Idle seconds of each rank, transfers free: with the costs of all stages of a pipeline made equal
/// (their mean), and with the costs as they are.
struct ExpectedIdle {
  std::vector<double> equal, actual;
};
ExpectedIdle expected_idle(const Plan& plan, const Layout& layout, const Costs& costs);

/// The time, by rank and wait, until which the rank waited for computation elsewhere; from then to
/// the wait's end, for what its cause says.
std::vector<std::vector<double>> computed_until(const Plan& plan, const Layout& layout,
                                                const std::vector<StepRecord>& ranks);

/// The cause of a wait that is no longer for computation: transfer, reduction or optimizer.
Cause cause_of(WaitFor what);

/// By rank. What a rank waits for other ranks' computation goes to schedule up to `expected.equal`,
/// then to imbalance up to `expected.actual`, then to variation.
std::vector<IdleCauses> idle_causes(const Plan& plan, const Layout& layout,
                                    const std::vector<StepRecord>& ranks,
                                    const ExpectedIdle& expected);

}  // namespace concertina
