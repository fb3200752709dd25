// The contents of a predicted step's picture: boxes of work, waits, saved activations, and causes
// of idle time. Invariant: plain values and pure functions; times are in seconds within the step.
// timeline_grid.cc writes them as text, timeline_json.cc as data for concertina/timeline.py.
#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "parallel/simulate/simulate.h"

namespace concertina {

/// The work of a rank in a box: F, B, I, W, the optimizer's part of STEP; or the cause of a wait:
/// the computation of other ranks, then messages.
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
/// Returns "F", "B", "I", "W", "S", or "." for a wait.
char letter_of(WorkKind work);

struct WorkBox {
  WorkKind work = WorkKind::forward;
  double start = 0, end = 0;
  int stage = -1, microbatch = -1;  // of F, B, I and W
  int chunk = 0;                    // index among the stages of its rank
  int part = 0;                     // 1 or 2 if two actions overlap
  std::string what{};               // reason for a wait
};

/// A schedule and the times at which its actions run.
struct TimelinePanel {
  std::string name;
  Plan plan;
  Layout layout;
  Costs costs;
  Timeline timeline;                          // predicted or measured
  std::vector<std::vector<WorkBox>> waits{};  // by rank: waits with a known cause

  std::size_t ranks() const { return plan.rows.size(); }
  int microbatches() const;
};

/// The boxes of one rank in row order, followed by its known waits.
std::vector<WorkBox> work_boxes(const TimelinePanel& panel, std::size_t rank);

/// Returns the work that fills most of each of `count` columns of `column` seconds; nullopt for a
/// mostly idle column.
std::vector<std::optional<WorkKind>> main_work(const std::vector<WorkBox>& boxes, double column,
                                               std::size_t count);

/// The largest number of stages on a rank.
int chunks_of(const TimelinePanel& panel);

/// An amount from time `at` until the next level.
struct SavedLevel {
  double at = 0, amount = 0;
};
/// The activations that a rank saves, each from F to B or W of its microbatch on a stage: in bytes
/// if `bytes`, otherwise as the rank's share of the model, so that schedules with one and with many
/// stages per rank can be compared.
std::vector<SavedLevel> saved_levels(const TimelinePanel& panel, std::size_t rank, bool bytes);

/// Parts of the makespan in which ranks are idle, averaged over the ranks that work. They add up to
/// Timeline::mean_bubble. Each is the growth of idle time when its cause is added to the
/// simulation: equal stages and free transfers; stages as they are; messages; gradients, weights
/// and the rest of STEP (in the order and with the meaning of parallel/simulate/idle_causes.h).
struct IdleShares {
  double schedule = 0, imbalance = 0, transfer = 0, exchange = 0;
};
IdleShares idle_shares(const TimelinePanel& panel);

/// At most `count` of `ranks` ranks, evenly spaced, including the first and the last.
std::vector<std::size_t> spread_ranks(std::size_t ranks, std::size_t count);

struct GridLook {
  std::size_t width = 0;  // characters per line; 0: unlimited
  bool color = false;    // ANSI, 256 colors
};

/// One cell per duration of the shortest action: "F3---" is F of microbatch 3, with dashes for its
/// duration, and '.' an idle cell; with several stages per rank, "5F3" is stage 5. If that does not
/// fit, or durations are not multiples of the shortest, a cell has one letter, for the work that
/// takes most of it; if that does not fit either, cells are longer. The last line
/// then gives the scale.
std::string timeline_grid(const std::vector<TimelinePanel>& panels, const GridLook& look);

/// Returns `inches`, the width of the picture, and `panels`. Each panel has `name`, the numbers of
/// `ranks`, `microbatches` and `chunks`, `makespan`, `bubble`, `critical_path` (its computations:
/// rank, start, end) and `rows`. A row has a `rank` and its `boxes`, lists of kind of work, start
/// and end; for an action or a known wait also its description; for F, B, I and W also microbatch,
/// chunk and part. If there are many actions, each box is a run of columns with only kind, start
/// and end; the longest step has `columns` columns, two per point (1/72 inch) of the picture.
nlohmann::ordered_json timelines_json(const std::vector<TimelinePanel>& panels, double inches);

/// Returns the activations of the rank that saves the most: `rank`, and `levels`, pairs of a time
/// and the amount from then on, as in saved_levels().
nlohmann::ordered_json most_saved_json(const TimelinePanel& panel, bool bytes);

}  // namespace concertina
