// The position of each action in a plan, and what its stage needs to know about its neighbors.
// Invariant: nodes number the actions of a plan row by row; lookups take constant time.
#pragma once

#include <utility>
#include <vector>

#include "parallel/plan/schedule.h"

namespace concertina {

/// A stage of a layout, as seen from a plan.
struct StageInfo {
  int rank = 0;
  int first_microbatch = 0, last_microbatch = 0;
  bool first = false, last = false;                   // first and last stage of its pipeline
  bool remote_previous = false, remote_next = false;  // whether that neighbor is on another rank

  // These depend on the frozen prefix of units (Layout::frozen_units).
  bool trains = true;              // whether it has units that train; otherwise it only runs F
  bool keeps_input = false;        // whether its gradients need its input
  bool gives_gradient = false;     // whether it gives a gradient to the previous stage
  bool sends_gradient = false;     // whether the previous stage is on another rank
  bool receives_gradient = false;  // whether a gradient arrives from another rank
  /// Whether its output gets no answer, so only a completed send shows that it has arrived.
  bool sends_unanswered() const { return remote_next && !trains; }
};

std::vector<StageInfo> stage_infos(const Layout& layout);

struct Place {
  int rank = 0, position = 0;
  bool operator==(const Place&) const = default;
};

class PlanIndex {
 public:
  /// Skips actions that do not belong to `layout`; of equal actions, only the first counts.
  PlanIndex(const Plan& plan, const Layout& layout);

  /// Returns the node of (kind, stage, microbatch), or -1. The stage must exist.
  int find(Kind kind, int stage, int microbatch) const;
  int find(const Action& action) const {
    return find(action.kind, action.stage, action.microbatch);
  }
  /// Returns the node of the B, or else the I, that computes the gradient of the stage's input.
  int find_input_gradient(int stage, int microbatch) const;
  /// Returns the node of the B, or else the W: the last action of a microbatch on a stage.
  int find_last(int stage, int microbatch) const;

  int nodes() const { return row_begin_.back(); }
  int node(int rank, int position) const { return row_begin_[rank] + position; }
  Place place(int node) const;
  const std::vector<int>& row_begin() const { return row_begin_; }
  const std::vector<StageInfo>& stages() const { return stages_; }
  /// Number of ordered pairs of ranks with messages between them.
  int channels() const { return channels_; }
  /// The channel of a SEND or RECV between two ranks.
  int channel(const Action& transfer) const;
  /// Whether the stage exists and its pipeline includes the microbatch (-1 for REDUCE and STEP).
  bool contains(const Action& action) const;

 private:
  static constexpr int kKinds = 10;
  std::size_t cell(const Action& action) const;
  void number_channels();

  std::vector<StageInfo> stages_;
  /// Channels to and from the next stage, by stage; -1 if it is on the same rank.
  std::vector<int> forward_channel_, backward_channel_;
  int channels_ = 0;
  std::vector<int> cell_begin_;  // by stage
  std::vector<int> row_begin_;   // by rank, with an end entry
  std::vector<int> node_;        // by cell and kind
};

/// A plan for a layout, with its index, that several passes share. The index is as large as the
/// layout, even if the plan is not: call check_size() first.
struct IndexedPlan {
  IndexedPlan(Plan its_plan, const Layout& its_layout)
      : plan(std::move(its_plan)), layout(its_layout), index(plan, layout) {}
  Plan plan;
  Layout layout;
  PlanIndex index;
};

}  // namespace concertina
