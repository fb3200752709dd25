// Rules of every freeze policy: the bound, un-freezing, and what is remembered in between.
// Invariant: pure. Frozen layers stay frozen, but for an un-freezing of all of them; never more
// than the bound are frozen; a figure that is not finite changes nothing. The state is plain data,
// all of it finite: a run that goes on with the state of a checkpoint decides as if never stopped.
#pragma once

#include <array>
#include <optional>

#include "parallel/policies/freeze_policy.h"

namespace concertina {

/// When all layers train again.
enum class Unfreeze { never, loss, lr };
/// The values of Unfreeze, as freeze.unfreeze spells them.
inline constexpr std::array<std::string_view, 3> kUnfreezeNames{"never", "loss", "lr"};

struct FreezeRules {
  std::string_view name;  // of the policy
  const FreezePolicy* policy = nullptr;
  OptionValues options{};
  int layers = 0;          // of the model
  int most = 0;            // that may be frozen
  std::int64_t steps = 0;  // of the run
  Unfreeze unfreeze = Unfreeze::never;
  /// No layer freezes before so many steps are done: the policy is asked for the first time then.
  std::int64_t after = 0;
  bool warms_up = false;  // `after` is the end of the learning rate's warm-up
  /// `loss`: on a loss above the lowest one by this share of it. `lr`: on its first rise after a
  /// fall, which is the restart of a schedule and no warm-up.
  double rise = 0;
};

/// All that a run has to remember between two decisions, and over a restart. At most
/// kMostFreezeRecords - 1 records of two numbers per layer, and what FreezeDecision::memory may
/// have.
struct FreezeState {
  std::vector<FreezeRecord> history{};  // oldest first
  std::vector<double> memory{};
  std::optional<double> best_loss{}, last_lr{};
  bool lr_fell = false;
  /// Where the policy counts from: FreezeView.
  std::int64_t from_step = 0;
  double from_epoch = 0;
  SkipPlan planned{};  // at the start of the run, by FreezePolicy::plan_skips
  bool skips = false;  // weight gradients are left out as planned

  bool operator==(const FreezeState&) const = default;
};

/// The sums over the steps since the last decision. A run has to keep these too over a restart: a
/// checkpoint may fall between two decisions. Plain data, all of it finite.
struct FreezeSums {
  std::int64_t steps = 0;
  double loss = 0;                // sum over the steps
  double lr = 0;                  // of the last step
  std::vector<double> squares{};  // by layer, sum of the squared gradient norms
  bool finite = true;             // else a figure was not, and the record will say so

  bool operator==(const FreezeSums&) const = default;
};

/// Adds a step; `squared_norms` is by layer. Sums of no steps (`steps` set to 0 after a decision)
/// begin anew, in the memory that they have.
FreezeSums add_step(FreezeSums sums, double loss, double lr, std::span<const double> squared_norms);
/// The record of a decision point, without its drift. At least one step has been added.
FreezeRecord record_of(const FreezeSums& sums, std::int64_t step, double epoch, int frozen);

/// OptionValues of all policies, at their defaults.
OptionValues default_freeze_options();

/// The policy called `name` for a model of so many layers, of which at most `most` may be frozen;
/// its options are checked. Throws Error{bad_input} with the config key.
FreezeRules make_freeze_rules(std::string_view name, OptionValues options, int layers, int most);

/// Decides what to freeze after the step of `now`.
FreezeDecision decide(const FreezeRules& rules, const FreezeState& state, const FreezeRecord& now);

/// The state after that decision, for the next one.
FreezeState remember(const FreezeRules& rules, FreezeState state, FreezeRecord now,
                     const FreezeDecision& decision);

}  // namespace concertina
