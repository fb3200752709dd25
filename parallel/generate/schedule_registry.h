// A schedule: a generator of compute actions, where it wants its stages, what it promises.
// Invariant: everything that the rest of the program knows of a schedule stands in its entry; no
// other code knows one by name. Pure: no MPI, no threads, no clock.
#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/registry.h"
#include "parallel/plan/schedule.h"

namespace concertina {

/// The compute actions by rank, in order of execution.
using Rows = std::vector<std::vector<Action>>;

/// The view of a generator: one pipeline by itself, stages and microbatches counted from 0,
/// `stage_rank[s]` a dense rank index in [0, ranks).
struct PipelineShape {
  int ranks = 1, microbatches = 1;
  std::vector<int> stage_rank;
  int stages() const { return static_cast<int>(stage_rank.size()); }
};

/// Compute actions only (F, I, W, B), one row per rank of the shape.
using Generator = Rows (*)(const PipelineShape& shape);
/// The same for two opposite pipelines on one set of ranks: what `up` does is numbered on from
/// `down`, stages from down.stages() and microbatches from down.microbatches.
using PairGenerator = Rows (*)(const PipelineShape& down, const PipelineShape& up);

/// A figure that a schedule promises for p ranks, m microbatches and v chunks.
struct Claim {
  double value = 0;
  bool exact = true;  // else: at most
};

/// The claim where the published formula holds, else nothing.
inline std::optional<Claim> claim(bool published, double value, bool exact = true) {
  return published ? std::optional(Claim{value, exact}) : std::nullopt;
}

/// A promise of a schedule.
struct ClosedForm {
  const char* text = "";  // the formula
  std::optional<Claim> (*value)(int p, int m, int v) = nullptr;
  std::optional<Claim> at(int p, int m, int v) const {
    return value == nullptr ? std::nullopt : value(p, m, v);
  }
  /// The same for one replica. Published forms of opposite pipelines are of halves: there is none
  /// where one has more microbatches than the other, as leaves of the gradient sum stay whole.
  std::optional<Claim> on(const Layout& replica, int v) const;
};

/// Stages a rank may have of one pipeline: multiples of `step`, up to `most`.
struct Chunks {
  int usual = 1, step = 1, most = 1024;
};

struct Schedule {
  Generator generate = nullptr;
  PairGenerator generate_pair = nullptr;  // instead, where placement is `opposite`
  Placement placement = Placement::loop;
  Chunks chunks{};
  bool any_layout = false;  // else layouts of another placement or number of chunks are refused
  bool searched = false;    // found by search, which starts from the other schedules
  int rank_step = 1;        // divides the number of ranks of a pipeline
  /// Where it is from, and its rule.
  const char* about = "";
  /// Idle over ideal time, of the rank where it is largest, from the start of its first action to
  /// the end of its last one, with F = I = W = 1 on every stage and free transfers: the definition
  /// of Qi et al. 2023 (section 5.3), for which ranks need not start or end together.
  ClosedForm bubble{};
  /// The most microbatches of stages that a rank has between F and the end of W or B. A rank's
  /// share of the model has v stages: p v is what 1f1b saves.
  ClosedForm peak{};
};

/// Every schedule of the list in meson.build, by name.
std::span<const Entry<Schedule>> schedules();

/// How a replica has to fold for `schedule`. `chunks`: as asked for; 0 is the schedule's own
/// number. Throws Error{bad_input} with the rule if the schedule has no form with that number.
Folding folding_of(const Entry<Schedule>& schedule, int chunks);

/// Where the stages have to be, in words: "2 chunks per rank in a wave".
std::string describe(const Schedule& schedule);

/// The entry called `name`; throws Error{bad_input} that lists the names.
const Entry<Schedule>& find_schedule(std::string_view name);

}  // namespace concertina
