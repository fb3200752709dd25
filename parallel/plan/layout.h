// Which rank holds which units and which microbatches.
// Invariant: a valid Layout covers every unit once in each pipeline and every microbatch once.
#pragma once

#include <string>
#include <vector>

#include "core/model/model_spec.h"
#include "parallel/plan/partition.h"

namespace concertina {

/// Units [first_unit, last_unit) on `rank`. A rank may hold several stages of one pipeline.
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
  /// Units [0, frozen_units) only run forward (of the run, not of `parallel.layout`).
  int frozen_units = 0;
  bool operator==(const Layout&) const = default;

  /// Stages are numbered through all pipelines: stage s of pipeline p is first_stage(p) + s.
  int first_stage(int pipeline) const;
  int stage_count() const { return first_stage(static_cast<int>(pipelines.size())); }
  /// The number of units of the model: each pipeline has them all.
  int unit_count() const { return pipelines.front().stages.back().last_unit; }
  int pipeline_of(int stage) const;
  const StagePlacement& stage(int stage) const;
  /// All stages by number: for loops, as stage() and pipeline_of() walk over the pipelines.
  std::vector<StagePlacement> stages() const;
  /// Ranks that hold any of `units`, ascending, each once.
  std::vector<int> holders(const std::vector<int>& units) const;
};

/// Ranks that hold a stage, ascending.
std::vector<int> working_ranks(const Layout& layout);

/// Ranks [0, n) that a layout speaks of.
int rank_count(const Layout& layout);

/// "pp2xdp2" (ranks a replica, replicas), or "2+1" for pipelines of different depth.
std::string short_form(const Layout& layout);

/// The short form of a layout: dp replicas of pp ranks each.
struct Grid {
  int pp = 1, dp = 1;
  bool operator==(const Grid&) const = default;
};

/// The rank, of p, on which stage s of a pipeline lies.
enum class Placement {
  loop,      // s % p: neighbours on adjacent ranks, chunk after chunk
  wave,      // there and back: every second chunk in descending order, so both ends on one rank (V)
  opposite,  // two pipelines on the same ranks, one from each end; each has half the microbatches
};

/// Index in [0, p) of the rank that holds a stage; `back`: of the second of two opposite pipelines.
int rank_of_stage(Placement placement, int stage, int p, bool back = false);

/// How a replica folds onto its ranks; which schedule asks for what is in its registry entry.
struct Folding {
  Folding(int chunks_ = 1, Placement placement_ = Placement::loop, int rank_step_ = 1)
      : chunks(chunks_), placement(placement_), rank_step(rank_step_) {}
  int chunks = 1;  // stages a rank has of one pipeline
  Placement placement = Placement::loop;
  int rank_step = 1;  // divides pp
  int pipelines() const { return placement == Placement::opposite ? 2 : 1; }
};

/// dp replicas of pp ranks with `chunks` stages each, rank = replica * pp + rank_of_stage().
/// `partition` has pp * chunks ranges; the leaves are balanced over the pipelines, in order.
Layout make_layout(const std::vector<UnitRange>& partition, Grid grid, int microbatches, int leaves,
                   Folding folding = {});

/// The layout as `parallel.layout` reads it: `[{microbatches = [0, 4], stages = [{rank = 0, units =
/// [0, 3]},
/// ...]}, ...]`, ranges half open.
std::string to_toml(const Layout& layout);

}  // namespace concertina
