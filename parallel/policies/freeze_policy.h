// A freeze policy: how many leading layers to freeze, decided from what the run has seen,
// or which weight gradients to leave out. Invariant: pure; a decision depends on the view and the
// options alone, both the same bits on every rank and at every layout, so every rank decides alike.
// No code knows a policy by name.
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
  std::int64_t step = 0;            // steps done
  double epoch = 0;                 // epochs done
  double loss = 0;                  // mean training loss since the last record
  double lr = 0;                    // of the last step
  int frozen = 0;                   // layers that were frozen before this decision
  std::vector<double> grad_norm{};  // by layer, root mean square since the last record; 0: frozen
  /// By layer, |w - r| / |w| against the reference snapshot r; empty: there is no snapshot.
  std::vector<double> drift{};
  bool reference = false;  // this decision took a snapshot, from which later drift counts

  bool operator==(const FreezeRecord&) const = default;
};

/// The view of a policy.
struct FreezeView {
  int layers = 0;
  int most = 0;            // layers that may be frozen
  std::int64_t steps = 0;  // of the run
  /// Where the policy counts from: the start of the run, or its last un-freezing.
  std::int64_t from_step = 0;
  double from_epoch = 0;
  /// Oldest first; the last one is now. None is older than where the policy counts from.
  std::span<const FreezeRecord> history{};
  /// The memory of the policy's last decision; empty at first.
  std::span<const double> memory{};
  /// The plan of plan_skips() at the start of the run; empty for other policies. Not null.
  const SkipPlan* skips = nullptr;

  const FreezeRecord& now() const { return history.back(); }
};

struct FreezeDecision {
  int frozen = 0;                // leading layers, from now on
  double statistic = 0;          // the figure that decided, finite
  std::string reason{};          // why, in words
  bool take_reference = false;   // take a snapshot of the weights as they are now
  std::vector<double> memory{};  // for the next decision: at most 4 numbers, and 2 per layer
  bool skips = false;            // weight gradients are left out as planned, from now on

  bool operator==(const FreezeDecision&) const = default;
};

/// Newest records that any policy may ask for: a checkpoint keeps them.
inline constexpr int kMostFreezeRecords = 64;

struct FreezePolicy {
  /// The layers that it would freeze. Whatever it says, freeze_rules.h keeps what is frozen frozen,
  /// and within the bound.
  FreezeDecision (*decide)(const FreezeView& view, const OptionValues& options) = nullptr;
  /// Its knobs: the config keys freeze.<name>. No two policies share a name.
  std::vector<Option> options{};
  /// Keys of [freeze] that a run reads for it, besides those.
  std::vector<std::string_view> keys{"freeze.every", "freeze.after", "freeze.max",
                                     "freeze.unfreeze"};
  bool says_when = false;        // its options are times: none waits for the end of the warm-up
  bool wants_reference = false;  // else records have no drift
  /// Its decisions follow from steps and epochs where the gradient norm falls from layer to layer:
  /// `plan` can say them before a run.
  bool foreseen = false;
  /// Length of the history that it reads, the record of now included; null: 1. At most
  /// kMostFreezeRecords.
  int (*records)(const OptionValues& options) = nullptr;
  /// Which weight gradients a run would leave out that starts with this assignment, asked for once;
  /// null: none.
  SkipPlan (*plan_skips)(const Job& job, const Assignment& start,
                         const OptionValues& options) = nullptr;
  /// Throws Error{bad_input} for options that contradict each other or the model; null: none do.
  void (*check)(const OptionValues& options, int layers, int most) = nullptr;
  /// Names the parts of its options that begin after decision `last`; empty or null: there are
  /// none.
  std::string (*unreached)(const OptionValues& options, const FreezeRecord& last) = nullptr;
  /// Its rule, and where it is from.
  const char* about = "";
};

/// Every policy of the list in meson.build, by name.
std::span<const Entry<FreezePolicy>> freeze_policies();

}  // namespace concertina
