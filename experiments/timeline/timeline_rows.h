// The content of the picture of a predicted step: boxes of work, waits, saved activations, and why
// ranks wait. Invariant: plain values, pure functions, in seconds of the step. timeline_grid.cc
// writes them in letters; timeline_json.cc as data, which concertina/timeline.py draws.
#pragma once

#include <nlohmann/json.hpp>
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

struct GridLook {
  std::size_t width = 0;  // characters of a line; 0: as many as it takes
  bool colour = false;    // ANSI, 256 colours
};

/// One cell per duration of the shortest action: "F3---" is F of microbatch 3, dashes as long as it
/// lasts, '.' a cell of waiting; with several stages per rank "5F3", stage 5. Where that does not
/// fit, or durations are no multiples of the shortest, a letter per cell, for what takes most of
/// it; where that does not fit either, cells are longer. The last line says what a column is then.
std::string timeline_grid(const std::vector<TimelinePanel>& panels, const GridLook& look);

/// Returns `inches`, how wide the picture is, and `panels`, each with `name`, numbers of `ranks`,
/// `microbatches` and `chunks`, `makespan`, `bubble`, `critical_path` (the computations on it:
/// rank, start, end) and `rows`: a `rank` and its `boxes`, which are lists of kind of work, start
/// and end; of an action or a known wait also what it is; of F, B, I and W also microbatch, chunk
/// and part. Where actions are many, boxes are runs of columns with kind, start and end alone, and
/// `columns` of them are as long as the longest step: two per point of the picture.
nlohmann::ordered_json timelines_json(const std::vector<TimelinePanel>& panels, double inches);

/// Returns the activations of the rank that saves most: `rank`, and `levels`, pairs of a time and
/// the amount from then on, as of saved_levels().
nlohmann::ordered_json most_saved_json(const TimelinePanel& panel, bool bytes);

}  // namespace concertina
