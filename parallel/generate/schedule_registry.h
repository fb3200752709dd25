// A schedule: a generator of compute actions, the placement of its stages, and its properties.
// Invariant: the rest of the program knows schedules only by their entries; no other code refers to
// one by name. Pure: no MPI, no threads, no clock.
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

/// The input of a generator: a single pipeline, stages and microbatches counted from 0,
/// `stage_rank[s]` a dense rank index in [0, ranks).
struct PipelineShape {
  int ranks = 1, microbatches = 1;
  std::vector<int> stage_rank;
  int stages() const { return static_cast<int>(stage_rank.size()); }
};

/// Generates compute actions only (F, I, W, B), one row per rank of the shape.
using Generator = Rows (*)(const PipelineShape& shape);
/// The same for two opposite pipelines on one set of ranks. `up` is numbered after `down`: its
/// stages from down.stages(), microbatches from down.microbatches.
using PairGenerator = Rows (*)(const PipelineShape& down, const PipelineShape& up);

/// A property that a schedule claims for p ranks, m microbatches and v chunks.
struct Claim {
  double value = 0;
  bool exact = true;  // false: an upper bound
};

/// Returns the claim if the published formula applies.
inline std::optional<Claim> claim(bool published, double value, bool exact = true) {
  return published ? std::optional(Claim{value, exact}) : std::nullopt;
}

/// A claim about a schedule in closed form.
struct ClosedForm {
  const char* text = "";  // the formula
  std::optional<Claim> (*value)(int p, int m, int v) = nullptr;
  std::optional<Claim> at(int p, int m, int v) const {
    return value == nullptr ? std::nullopt : value(p, m, v);
  }
  /// Evaluates it for one replica. Formulas for opposite pipelines assume equal halves: no claim
  /// applies if one pipeline has more microbatches than the other, since leaves are not split.
  std::optional<Claim> on(const Layout& replica, int v) const;
};

/// Stages per rank of one pipeline: multiples of `step`, up to `most`.
struct Chunks {
  int default_value = 1, step = 1, most = 1024;
};

struct Schedule {
  Generator generate = nullptr;
  PairGenerator generate_pair = nullptr;  // replaces `generate` if placement is `opposite`
  Placement placement = Placement::loop;
  Chunks chunks{};
  bool any_layout = false;  // false: rejects layouts with other placements or numbers of chunks
  bool searched = false;    // found by search, which starts from the other schedules
  int rank_step = 1;        // must divide the number of ranks in a pipeline
  /// Its source and its rule.
  const char* about = "";
  /// Idle over ideal time of the rank where it is largest, from the start of its first action to
  /// the end of its last one, with F = I = W = 1 on every stage and free transfers: the definition
  /// of Qi et al. 2023 (section 5.3), under which ranks need not start or end together.
  ClosedForm bubble{};
  /// Maximum number of stage activations on a rank between F and the end of W or B. A rank's
  /// share of the model is v stages; 1f1b saves p v.
  ClosedForm peak{};
};

/// Returns all schedules listed in meson.build, by name.
std::span<const Entry<Schedule>> schedules();

/// Returns how a replica must fold for `schedule`. `chunks` is the requested number (0: the
/// schedule's default). Throws Error{bad_input} with the rule if the schedule does not support it.
Folding folding_of(const Entry<Schedule>& schedule, int chunks);

/// Describes the required placement of stages, for example "2 chunks per rank in a wave".
std::string describe(const Schedule& schedule);

/// Returns the schedule `name`; throws Error{bad_input} with the list of names if there is none.
const Entry<Schedule>& find_schedule(std::string_view name);

}  // namespace concertina
