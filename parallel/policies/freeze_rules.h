// Rules common to all freeze policies: the bound, unfreezing, and the state between decisions.
// Invariant: pure. Frozen layers stay frozen until all of them unfreeze; the bound is never
// exceeded; a non-finite value changes nothing. The state is plain, finite data: a run resumed from
// a checkpoint makes the same decisions as one that never stopped.
#pragma once

#include <array>
#include <optional>

#include "parallel/policies/freeze_policy.h"

namespace concertina {

/// When all layers train again.
enum class Unfreeze { never, loss, lr };
/// The values of Unfreeze, as spelled in freeze.unfreeze.
inline constexpr std::array<std::string_view, 3> kUnfreezeNames{"never", "loss", "lr"};

struct FreezeRules {
  std::string_view name;  // name of the policy
  const FreezePolicy* policy = nullptr;
  OptionValues options{};
  int layers = 0;          // number of layers in the model
  int most = 0;            // maximum number of frozen layers
  std::int64_t steps = 0;  // total steps of the run
  Unfreeze unfreeze = Unfreeze::never;
  /// Number of steps to complete before the policy is called for the first time.
  std::int64_t after = 0;
  bool warms_up = false;  // whether `after` is the end of the learning rate's warm-up
  /// `loss`: when the loss exceeds the lowest so far by this fraction. (`lr`: when the rate first
  /// rises after a fall, which is the restart of a schedule rather than a warm-up.)
  double rise = 0;
};

/// State that a run keeps between decisions and across restarts: at most kMostFreezeRecords - 1
/// records with two numbers per layer, and FreezeDecision::memory.
struct FreezeState {
  std::vector<FreezeRecord> history{};  // oldest first
  std::vector<double> memory{};
  std::optional<double> best_loss{}, last_lr{};
  bool lr_fell = false;
  /// Same as in FreezeView.
  std::int64_t from_step = 0;
  double from_epoch = 0;
  SkipPlan planned{};  // result of FreezePolicy::plan_skips at the start of the run
  bool skips = false;  // weight gradients are skipped as planned

  bool operator==(const FreezeState&) const = default;
};

/// Sums over the steps since the last decision. Plain, finite data, kept across restarts, because a
/// checkpoint may be written between two decisions.
struct FreezeSums {
  std::int64_t steps = 0;
  double loss = 0;                // sum over the steps
  double lr = 0;                  // learning rate of the last step
  std::vector<double> squares{};  // by layer, sum of the squared gradient norms
  bool finite = true;             // false: a value was not finite, which the record will report

  bool operator==(const FreezeSums&) const = default;
};

/// Adds a step; `squared_norms` is by layer. If `steps` is 0, as set after a decision, the sums
/// restart in the same memory.
FreezeSums add_step(FreezeSums sums, double loss, double lr, std::span<const double> squared_norms);
/// Returns the record of a decision point, without its drift. Requires at least one added step.
FreezeRecord record_of(const FreezeSums& sums, std::int64_t step, double epoch, int frozen);

/// Returns the default options of all policies.
OptionValues default_freeze_options();

/// Returns the rules of policy `name` for a model with `layers` layers, of which at most `most` may
/// be frozen. Throws Error{bad_input} with the config key if options are invalid.
FreezeRules make_freeze_rules(std::string_view name, OptionValues options, int layers, int most);

/// Decides what to freeze after the step of `now`.
FreezeDecision decide(const FreezeRules& rules, const FreezeState& state, const FreezeRecord& now);

/// Returns the state after that decision, for the next one.
FreezeState remember(const FreezeRules& rules, FreezeState state, FreezeRecord now,
                     const FreezeDecision& decision);

}  // namespace concertina
