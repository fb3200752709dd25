// Changes to a run between two steps, and the policies that request them. Invariants: the loop asks
// one list of policies at every step, in order, and each may amend the requests of those before it;
// all ranks end up with the same change.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "core/step_history.h"
#include "experiments/run/trainer.h"
#include "io/metrics.h"
#include "parallel/repartition/layout_policy.h"

namespace concertina {

/// One finished step, or several that were executed together.
struct RunView {
  std::int64_t before = 0, step = 0, steps = 0;  // completed before and after it; in the whole run
  double seconds = 0;                            // per step
  const StepResult& result;
  std::int64_t epochs_before = 0, epochs = 0;  // whole epochs completed before and after it

  /// Whether an event that recurs every `every` steps is due now.
  bool due(std::int64_t every) const { return is_due(before, step, every); }
};

/// A line of events.jsonl.
struct RunEvent {
  EventKind kind;
  nlohmann::ordered_json facts;
};

struct Change {
  std::optional<LayoutChoice> next;  // nullopt: keep the assignment
  std::vector<std::string> reasons;  // one line each, human-readable
  std::vector<RunEvent> events;
  std::size_t cause = 0;  // index of the event that caused `next`
};

/// The advice for a checkpoint that lacks a policy's state.
inline constexpr const char* kOtherCheckpoint = "this version's checkpoint, or another run.name";

class ChangePolicy {
 public:
  virtual ~ChangePolicy() = default;
  /// Adds the policy's requests after the step in `view` to `change`. Collective.
  virtual void consider(const RunView& view, Trainer& trainer, Change& change) = 0;
  /// Called after `change` has been adopted, with the durations in `adoption`.
  virtual void adopted(const Change& /*change*/, const Adoption& /*adoption*/) {}
  /// Called at the end of the run; returns the remaining events.
  virtual std::vector<RunEvent> closing() { return {}; }
  /// The key of this policy's state in a checkpoint, and the state: everything that later decisions
  /// depend on.
  virtual const char* name() const = 0;
  virtual nlohmann::json progress() const = 0;
  /// Restores progress() before the first step; `progress` is null at the start of the run. Throws
  /// an error that names `source` if the state is malformed. Collective.
  virtual void restore(const nlohmann::json& progress, Trainer& trainer,
                       const std::string& source) = 0;
};

/// Adopts `change` and adds its durations to the event that caused it. If a rank lacks memory,
/// records that in an event of `change` and leaves the run unchanged. Collective.
std::optional<Adoption> adopt_change(Change& change, Trainer& trainer, int threads);

}  // namespace concertina
