// A layout of a search, modelled by one of its pipelines: work, memory and links of the ranks,
// bounds and closed forms of a step's time, and its simulation (parallel/simulate). A group of tp
// devices is one rank. All replicas do the same at the same time; the shares of links that the
// others leave are in the rates. Gradients are reduced by a ring, weights gathered. Invariant:
// pure.
#pragma once

#include <vector>

#include "parallel/generate/schedule_registry.h"
#include "parallel/plan/plan_memory.h"
#include "parallel/predict/unit_work.h"
#include "parallel/simulate/costs.h"

namespace concertina {

/// Bytes of one device, by purpose.
struct PlanMemory {
  double weights = 0;  // and gradients
  double optimizer = 0;
  double activations = 0;  // of all microbatches under way, and what one unit needs meanwhile
  double reserved = 0;
  double total() const { return weights + optimizer + activations + reserved; }
};

struct StepPrediction {
  double seconds = 0;
  double compute = 0;    // seconds, mean of ranks, without the following two
  double again = 0;      // recomputed
  double group = 0;      // all-reduces within tensor-parallel groups
  double transfer = 0;   // exposed: that the step would be shorter with free transfers
  double reduction = 0;  // exposed: with free reductions and gathers
  double update = 0;
  double bubble = 0;               // what is left of the step, mean of ranks
  std::vector<RowMemory> slots{};  // by rank
};

class CandidateModel {
 public:
  /// `problem` outlives it.
  CandidateModel(const PlanProblem& problem, const PlanCandidate& candidate, WorkTable& table);

  /// Returns a bound, which no plan of this candidate takes less than: the busiest rank's work,
  /// what must come before its first action, and its part of the update.
  double least_seconds() const;
  /// Returns the probable seconds of a step: the work of the busiest rank, and the idle time that
  /// the schedule promises (Schedule::bubble).
  double likely_seconds() const;
  /// `parts`: all figures (three simulations), else `seconds` and `slots` alone (one).
  StepPrediction simulated(bool parts) const;

  /// Returns the memory of the largest rank. `rows`: plan_memory() of the pipeline's plan.
  PlanMemory memory(const std::vector<RowMemory>& rows) const;
  /// The same before there is a plan. `peaks`: by rank, the most microbatches of stages between F
  /// and W; how they are spread over the rank's stages is not known, so that this may be a little
  /// less.
  PlanMemory memory(const std::vector<int>& peaks) const;
  /// Parameters on one device of this rank's group.
  double parameters(int rank) const { return ranks_[static_cast<std::size_t>(rank)].parameters; }

 private:
  /// Bytes that one stage keeps of a microbatch on one device: from F to W besides the stage's
  /// input, and from I to W.
  struct StageBytes {
    double saved = 0, grads = 0;
  };
  /// A rank of the pipeline: parameters on one device of its group, and seconds once per step.
  struct Rank {
    double parameters = 0;
    int units = 0;
    double scratch = 0;    // bytes that a backward pass takes while it runs
    double seconds = 0;    // of one microbatch on all of its stages
    double exchange = 0;   // of the gradients of what other ranks of the pipeline hold too
    double reduction = 0;  // of gradients, after the last backward
    double gather = 0;     // of updated weights
    double update = 0;
  };

  int rank_of(int stage) const;
  int ranks_of_host() const;
  double host_share(int sharing) const;
  LinkCosts boundary_link(int rank, int next) const;
  double replica_rate() const;
  void add_parameters(const ModelWork& model, const std::vector<UnitRange>& cuts);
  void add_once();
  double blocked_seconds(int from, int to) const;
  Costs simulation_costs(bool transfers, bool reductions) const;
  PlanMemory state(const Rank& rank) const;
  template <class Activations>
  PlanMemory largest(const Activations& activations) const;

  const PlanProblem& problem_;
  const PlanCandidate candidate_;
  const Entry<Schedule>& schedule_;
  const int microbatches_;
  std::vector<StageCosts> stages_;
  std::vector<StageBytes> bytes_;  // by stage
  std::vector<Rank> ranks_;
  double boundary_bytes_ = 0;
  std::vector<LinkCosts> links_;  // by rank: to the next one, the last one's to the first
  double again_ = 0, group_ = 0;  // seconds of one microbatch, all stages
};

/// Actions of the simulation, with transfers: what a budget counts.
double simulated_actions(const PlanCandidate& candidate, int microbatches);

}  // namespace concertina
