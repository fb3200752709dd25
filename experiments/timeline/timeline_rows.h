// The content of the picture of a predicted step: boxes of work, waits, saved activations, and why
// ranks wait. Invariant: plain values, pure functions, in seconds of the step. timeline_grid.cc
// writes them in letters, experiments/python/concertina/timeline.py draws them.
#pragma once

#include <optional>
#include <string>
#include <vector>

#include "parallel/simulate/simulate.h"

namespace concertina {

/// The work of a rank in a box: F, B, I, W, the optimizer's part of STEP; or what it waits for: the
/// computation of others, then messages.
enum class WorkKind {
  forward,
  backward,
  input,
  weight,
  optimizer,
  idle,
  transfer,
  reduction,
  exchange,
  count
};
inline constexpr auto kWorkKinds = static_cast<std::size_t>(WorkKind::count);
inline bool is_wait(WorkKind work) {
  return work >= WorkKind::idle;
}
/// "F", "B", "I", "W", "S", "." (a wait).
char letter_of(WorkKind work);

struct WorkBox {
  WorkKind work = WorkKind::forward;
  double start = 0, end = 0;
  int stage = -1, microbatch = -1;  // of F, B, I and W
  int chunk = 0;                    // which of its rank's stages it is
  int part = 0;                     // of two that overlap: 1 or 2
  std::string what{};               // of a wait: for what
};

/// A schedule, and when its actions run.
struct TimelinePanel {
  std::string name;
  Plan plan;
  Layout layout;
  Costs costs;
  Timeline timeline;                          // of these, or as it was measured
  std::vector<std::vector<WorkBox>> waits{};  // by rank: where it is known for what a rank waits

  std::size_t ranks() const { return plan.rows.size(); }
  int microbatches() const;
};

/// The boxes of one rank in the order of its row, then its known waits.
std::vector<WorkBox> work_boxes(const TimelinePanel& panel, std::size_t rank);

/// Returns the work that takes most of each of `count` columns of so many seconds; none where it is
/// mostly idle.
std::vector<std::optional<WorkKind>> main_work(const std::vector<WorkBox>& boxes, double column,
                                               std::size_t count);

/// The most stages that a rank has.
int chunks_of(const TimelinePanel& panel);

/// An amount from `at` on, until the next one.
struct SavedLevel {
  double at = 0, amount = 0;
};
/// The activations that a rank saves, each from F to B or W of its microbatch on a stage: bytes if
/// `bytes`, else the share of the microbatch that a rank has of the model, so that schedules of one
/// or many stages per rank compare.
std::vector<SavedLevel> saved_levels(const TimelinePanel& panel, std::size_t rank, bool bytes);

/// Parts of the makespan that ranks idle, as means over the ranks that work. They add up to
/// Timeline::mean_bubble. Each is what idle time grows by when its cause is added to the
/// simulation: equal stages and free transfers; stages as they are; messages; gradients, weights
/// and the rest of STEP (in the order and with the meaning of parallel/simulate/idle_causes.h).
struct IdleShares {
  double schedule = 0, imbalance = 0, transfer = 0, exchange = 0;
};
IdleShares idle_shares(const TimelinePanel& panel);

/// At most `count` of `ranks` ranks, at equal distances, the first and the last among them.
std::vector<std::size_t> spread_ranks(std::size_t ranks, std::size_t count);

}  // namespace concertina
