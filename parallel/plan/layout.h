// Assignment of units and microbatches to ranks.
// Invariant: a valid Layout covers every unit once in each pipeline and every microbatch once.
#pragma once

#include <string>
#include <vector>

#include "core/model/model_spec.h"
#include "parallel/plan/partition.h"

namespace concertina {

/// Units [first_unit, last_unit) on `rank`. A rank may have several stages of one pipeline.
struct StagePlacement {
  int rank = 0, first_unit = 0, last_unit = 0;
  bool operator==(const StagePlacement&) const = default;
};

/// Microbatches [first_microbatch, last_microbatch) of the step flow through `stages`.
struct Pipeline {
  std::vector<StagePlacement> stages;
  int first_microbatch = 0, last_microbatch = 0;
  int microbatches() const { return last_microbatch - first_microbatch; }
  bool operator==(const Pipeline&) const = default;
};

struct Layout {
  std::vector<Pipeline> pipelines;
  /// Units [0, frozen_units) only run forward. Set by the run, not by `parallel.layout`.
  int frozen_units = 0;
  bool operator==(const Layout&) const = default;

  /// Stages are numbered across all pipelines: stage s of pipeline p is first_stage(p) + s.
  int first_stage(int pipeline) const;
  int stage_count() const { return first_stage(static_cast<int>(pipelines.size())); }
  /// Number of units in the model; every pipeline contains all of them.
  int unit_count() const { return pipelines.front().stages.back().last_unit; }
  int pipeline_of(int stage) const;
  const StagePlacement& stage(int stage) const;
  /// All stages, in order. Prefer it in loops: stage() and pipeline_of() search the pipelines.
  std::vector<StagePlacement> stages() const;
  /// Ranks that have any of `units`, ascending, without duplicates.
  std::vector<int> holders(const std::vector<int>& units) const;
};

/// Ranks that have a stage, ascending.
std::vector<int> working_ranks(const Layout& layout);

/// One more than the highest rank in the layout.
int rank_count(const Layout& layout);

/// Returns "pp2xdp2" (ranks per replica, replicas), or "2+1" for pipelines of different depth.
std::string short_form(const Layout& layout);

/// The compact form of a layout: dp replicas of pp ranks each.
struct Grid {
  int pp = 1, dp = 1;
  bool operator==(const Grid&) const = default;
};

/// Which of the p ranks runs stage s of a pipeline.
enum class Placement {
  loop,  // s % p: neighbors on adjacent ranks, chunk after chunk
  wave,  // back and forth: every second chunk in descending order, so one rank has both ends (V)
  opposite,  // two pipelines on the same ranks, one from each end, with half of the microbatches
             // each
};

/// Index in [0, p) of a stage's rank; `back` selects the second of two opposite pipelines.
int rank_of_stage(Placement placement, int stage, int p, bool back = false);

/// How a replica is folded onto its ranks; a schedule's registry entry specifies its folding.
struct Folding {
  Folding(int chunks_ = 1, Placement placement_ = Placement::loop, int rank_step_ = 1)
      : chunks(chunks_), placement(placement_), rank_step(rank_step_) {}
  int chunks = 1;  // stages per rank and pipeline
  Placement placement = Placement::loop;
  int rank_step = 1;  // must divide pp
  int pipelines() const { return placement == Placement::opposite ? 2 : 1; }
};

/// Returns dp replicas of pp ranks with `chunks` stages each, rank = replica * pp +
/// rank_of_stage(). `partition` consists of pp * chunks ranges. Leaves are balanced over the
/// pipelines, in order.
Layout make_layout(const std::vector<UnitRange>& partition, Grid grid, int microbatches, int leaves,
                   Folding folding = {});

/// Returns the layout in the syntax of `parallel.layout`: `[{microbatches = [0, 4], stages = [{rank
/// = 0, units = [0, 3]}, ...]}, ...]`, with half-open ranges.
std::string to_toml(const Layout& layout);

}  // namespace concertina
