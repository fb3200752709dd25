// A change of a run between two steps, and who wants one.
// Invariants: the loop asks one list of policies at every step, in order; each amends what those
// before it want; all ranks end with the same change.
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

/// A step has ended, or several that were done at once.
struct RunView {
  std::int64_t before = 0, step = 0, steps = 0;  // done before it and now, and of the run
  double seconds = 0;                            // of each
  const StepResult& result;
  std::int64_t epochs_before = 0, epochs = 0;  // whole ones done before and after it

  /// Whether what happens every `every` steps happens now.
  bool due(std::int64_t every) const { return is_due(before, step, every); }
};

/// A line of events.jsonl.
struct RunEvent {
  EventKind kind;
  nlohmann::ordered_json facts;
};

struct Change {
  std::optional<LayoutChoice> next;  // nothing: the assignment stays
  std::vector<std::string> reasons;  // one line each, for a person
  std::vector<RunEvent> events;
  std::size_t cause = 0;  // the event that `next` is of
};

/// The advice where a checkpoint does not say what a policy needs to know.
inline constexpr const char* kOtherCheckpoint = "a checkpoint of this version, or another run.name";

class ChangePolicy {
 public:
  virtual ~ChangePolicy() = default;
  /// Adds what it wants after the step of `view` to `change`. Collective.
  virtual void consider(const RunView& view, Trainer& trainer, Change& change) = 0;
  /// The run goes on as `change` says, which took `adoption`.
  virtual void adopted(const Change& /*change*/, const Adoption& /*adoption*/) {}
  /// The run has ended: what is left to say.
  virtual std::vector<RunEvent> closing() { return {}; }
  /// The key of this policy's progress in a checkpoint, and everything that later decisions depend
  /// on.
  virtual const char* name() const = 0;
  virtual nlohmann::json progress() const = 0;
  /// The inverse of progress(), before the first step; null: at the start of the run. Throws a
  /// failure that names `source` if it is of another form. Collective.
  virtual void restore(const nlohmann::json& progress, Trainer& trainer,
                       const std::string& source) = 0;
};

/// Goes on as `change` says, if all ranks have the memory for that; else an event of `change` says
/// why not, and the run stays as it is. What that took is added to the event of its cause.
/// Collective.
std::optional<Adoption> adopt_change(Change& change, Trainer& trainer, int threads);

}  // namespace concertina
