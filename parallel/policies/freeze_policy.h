// A freeze policy decides, from the history of the run, how many leading layers to freeze or which
// weight gradients to skip. Invariant: pure; a decision depends only on the view and the options.
// Both are bit-identical on every rank and for every layout, so all ranks make the same decision.
// No code refers to a policy by name.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/options.h"
#include "core/registry.h"
#include "parallel/plan/assignment.h"
#include "parallel/policies/skip_plan.h"

namespace concertina {

/// One decision point.
struct FreezeRecord {
  std::int64_t step = 0;            // steps completed
  double epoch = 0;                 // epochs completed
  double loss = 0;                  // mean training loss since the last record
  double lr = 0;                    // learning rate of the last step
  int frozen = 0;                   // frozen layers before this decision
  std::vector<double> grad_norm{};  // by layer, root mean square since the last record; 0: frozen
  /// By layer, |w - r| / |w| with the reference snapshot r; empty: there is no snapshot.
  std::vector<double> drift{};
  bool reference = false;  // this decision took a snapshot, the reference for later drift

  bool operator==(const FreezeRecord&) const = default;
};

/// The input of a policy.
struct FreezeView {
  int layers = 0;
  int most = 0;            // maximum number of frozen layers
  std::int64_t steps = 0;  // total steps of the run
  /// The origin of the policy's steps and epochs: the start of the run or the last unfreezing.
  std::int64_t from_step = 0;
  double from_epoch = 0;
  /// Oldest first, ending with the current one. None is older than from_step.
  std::span<const FreezeRecord> history{};
  /// The memory of the policy's last decision; empty at first.
  std::span<const double> memory{};
  /// The plan made by plan_skips() at the start of the run; empty if there is none. Never null.
  const SkipPlan* skips = nullptr;

  const FreezeRecord& now() const { return history.back(); }
};

struct FreezeDecision {
  int frozen = 0;                // number of leading layers frozen from now on
  double statistic = 0;          // the finite number on which the decision is based
  std::string reason{};          // explanation for the user
  bool take_reference = false;   // take a snapshot of the current weights
  std::vector<double> memory{};  // input to the next decision: at most 4 numbers plus 2 per layer
  bool skips = false;            // weight gradients are skipped as planned, from now on

  bool operator==(const FreezeDecision&) const = default;
};

/// Maximum number of records that a policy may request; checkpoints keep them.
inline constexpr int kMostFreezeRecords = 64;

struct FreezePolicy {
  /// Returns how many layers to freeze. freeze_rules.h applies the bound and keeps frozen layers
  /// frozen.
  FreezeDecision (*decide)(const FreezeView& view, const OptionValues& options) = nullptr;
  /// Its options: the config keys `freeze.<name>`. No two policies share an option name.
  std::vector<Option> options{};
  /// Other keys in [freeze] that a run with this policy reads.
  std::vector<std::string_view> keys{"freeze.every", "freeze.after", "freeze.max",
                                     "freeze.unfreeze"};
  bool says_when = false;  // whether its options are times, so it need not wait for the warm-up
  bool wants_reference = false;  // false: records contain no drift
  /// Whether its decisions follow from steps and epochs if gradient norms decrease from layer to
  /// layer, so that `plan` can show them before a run.
  bool foreseen = false;
  /// Number of records that it reads, including the current one (null: 1), at most
  /// kMostFreezeRecords.
  int (*records)(const OptionValues& options) = nullptr;
  /// Returns the weight gradients to skip in a run that starts with this assignment; called once.
  /// Null: none.
  SkipPlan (*plan_skips)(const Job& job, const Assignment& start,
                         const OptionValues& options) = nullptr;
  /// Throws Error{bad_input} if options conflict with each other or with the model; may be null.
  void (*check)(const OptionValues& options, int layers, int most) = nullptr;
  /// Returns the names of options whose time is after decision `last`; may be null or return "".
  std::string (*unreached)(const OptionValues& options, const FreezeRecord& last) = nullptr;
  /// Its rule and source.
  const char* about = "";
};

/// Returns all policies listed in meson.build, by name.
std::span<const Entry<FreezePolicy>> freeze_policies();

}  // namespace concertina
