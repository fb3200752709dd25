// Where each action of a plan stands, and what its stage needs to know of its neighbours.
// Invariant: nodes number the actions of a plan row by row; lookups take constant time.
#pragma once

#include <utility>
#include <vector>

#include "parallel/plan/schedule.h"

namespace concertina {

/// One stage of a layout, seen from a plan.
struct StageInfo {
  int rank = 0;
  int first_microbatch = 0, last_microbatch = 0;
  bool first = false, last = false;                   // of its pipeline
  bool remote_previous = false, remote_next = false;  // that neighbour is on another rank

  // What a frozen prefix of units leaves of it (Layout::frozen_units).
  bool trains = true;              // it has units that train; else F is all that it runs
  bool keeps_input = false;        // it has an input, which its gradients need
  bool gives_gradient = false;     // to the stage before it, which trains
  bool sends_gradient = false;     // that stage is on another rank
  bool receives_gradient = false;  // from another rank
  /// Nothing comes back for its output: who made it can only learn from the send that it arrived.
  bool sends_unanswered() const { return remote_next && !trains; }
};

std::vector<StageInfo> stage_infos(const Layout& layout);

struct Place {
  int rank = 0, position = 0;
  bool operator==(const Place&) const = default;
};

class PlanIndex {
 public:
  /// Actions that do not belong to `layout` are left out; of equal actions the first one counts.
  PlanIndex(const Plan& plan, const Layout& layout);

  /// Node of (kind, stage, microbatch), or -1. The stage must exist.
  int find(Kind kind, int stage, int microbatch) const;
  int find(const Action& action) const {
    return find(action.kind, action.stage, action.microbatch);
  }
  /// B, or else I: what makes the gradient of the stage's input.
  int find_input_gradient(int stage, int microbatch) const;
  /// B, or else W: the last action of a microbatch on a stage.
  int find_last(int stage, int microbatch) const;

  int nodes() const { return row_begin_.back(); }
  int node(int rank, int position) const { return row_begin_[rank] + position; }
  Place place(int node) const;
  const std::vector<int>& row_begin() const { return row_begin_; }
  const std::vector<StageInfo>& stages() const { return stages_; }
  /// Ordered pairs of ranks with messages between them, numbered from 0.
  int channels() const { return channels_; }
  /// The channel of a SEND or RECV at a boundary between two ranks.
  int channel(const Action& transfer) const;
  /// The stage exists, and so does the microbatch in its pipeline (-1 for REDUCE and STEP).
  bool contains(const Action& action) const;

 private:
  static constexpr int kKinds = 10;
  std::size_t cell(const Action& action) const;
  void number_channels();

  std::vector<StageInfo> stages_;
  /// Channel to the next stage and back from it, by stage; -1 where that is no other rank.
  std::vector<int> forward_channel_, backward_channel_;
  int channels_ = 0;
  std::vector<int> cell_begin_;  // by stage
  std::vector<int> row_begin_;   // by rank, and the end
  std::vector<int> node_;        // by cell and kind
};

/// A plan of a layout with its index, which passes hand on. The index takes memory of the layout's
/// size, whatever the plan has: check_size() says first whether that is the plan's own.
struct IndexedPlan {
  IndexedPlan(Plan its_plan, const Layout& its_layout)
      : plan(std::move(its_plan)), layout(its_layout), index(plan, layout) {}
  Plan plan;
  Layout layout;
  PlanIndex index;
};

}  // namespace concertina
