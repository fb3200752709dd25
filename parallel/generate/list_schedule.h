// Builds rows of actions step by step in time: at each step, a rule selects an action for every
// idle rank from those that can run.
// Invariant: an action starts only after everything that it needs has ended, so the rows cannot
// deadlock. Costs are always F = I = W = 1 and B = 2: the order is generated once, for balanced
// stages. Takes time linear in the number of actions if each choice takes constant time.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "parallel/generate/schedule_registry.h"

namespace concertina {

/// The state of the actions that have run.
class ListProgress {
 public:
  explicit ListProgress(const PipelineShape& shape);

  /// Whether everything that `action` needs has ended: for F its input, for I and B the gradient of
  /// their output, for W its I.
  bool ready(const Action& action) const;
  /// The lowest microbatch of `stage` whose F, or whose I or B (`backward`), has not started.
  int next_forward(int stage) const { return forwards_[stage]; }
  int next_backward(int stage) const { return backwards_[stage]; }
  /// Number of stage activations on `rank` between F and the end of W or B.
  int saved(int rank) const { return saved_[rank]; }
  const PipelineShape& shape() const { return shape_; }

  void start(int rank, const Action& action);
  void tick() { ++now_; }
  bool idle(int rank) const { return free_[rank] <= now_; }
  /// Whether some rank is busy, so that advancing time makes progress.
  bool waiting() const;
  /// Whether every microbatch of every stage has completed its W or B.
  bool complete() const { return open_ == 0; }

 private:
  std::size_t cell(int stage, int microbatch) const {
    return static_cast<std::size_t>(stage) * shape_.microbatches + microbatch;
  }

  const PipelineShape& shape_;
  int now_ = 0;
  std::size_t open_;
  std::vector<int> forward_end_, gradient_end_;  // by cell; INT_MAX: not started
  std::vector<int> forwards_, backwards_;        // by stage
  std::vector<int> saved_, free_;                // by rank
};

/// Returns the action that the idle `rank` starts: ready, not repeated, and in ascending order of
/// microbatches per stage and kind. If it returns nothing, the rank waits for one step.
using PickRule = std::function<std::optional<Action>(int rank, const ListProgress& progress)>;

/// Runs until every stage has completed all microbatches. A rule that makes no progress is a
/// programming error.
Rows list_schedule(const PipelineShape& shape, const PickRule& rule);

}  // namespace concertina
