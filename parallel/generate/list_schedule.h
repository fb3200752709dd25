// Builds rows of actions step by step in time: at each step every idle rank takes what a rule picks
// from what can run now.
// Invariant: an action starts only after everything that it needs has ended, so rows that come out
// of here cannot deadlock. Costs are F = I = W = 1 and B = 2, whatever the real ones are: a
// schedule's order is made once, for balanced stages. Linear in actions, as long as the rule is.
#pragma once

#include <functional>
#include <optional>
#include <vector>

#include "parallel/generate/schedule_registry.h"

namespace concertina {

/// The actions that have run so far.
class ListProgress {
 public:
  explicit ListProgress(const PipelineShape& shape);

  /// Whether all that `action` needs has ended: F its input, I and B their output's gradient, W its
  /// I.
  bool ready(const Action& action) const;
  /// The lowest microbatch of `stage` whose F, or whose I or B (`backward`), has not started.
  int next_forward(int stage) const { return forwards_[stage]; }
  int next_backward(int stage) const { return backwards_[stage]; }
  /// Microbatches of stages on `rank` between F and the end of W or B.
  int saved(int rank) const { return saved_[rank]; }
  const PipelineShape& shape() const { return shape_; }

  void start(int rank, const Action& action);
  void tick() { ++now_; }
  bool idle(int rank) const { return free_[rank] <= now_; }
  /// Some rank is busy: time alone brings something new.
  bool waiting() const;
  /// Every microbatch of every stage has had its W or B.
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

/// An action that `rank`, idle now, shall start: ready, once each, each stage's microbatches in
/// ascending order for every kind. Nothing: it waits a step.
using PickRule = std::function<std::optional<Action>(int rank, const ListProgress& progress)>;

/// Runs until every stage has had all microbatches. A rule that never goes on is a programming
/// error.
Rows list_schedule(const PipelineShape& shape, const PickRule& rule);

}  // namespace concertina
