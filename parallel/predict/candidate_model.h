// Models a candidate layout by one of its pipelines: work, memory and links of its ranks, bounds
// and closed forms for the step time, and its simulation (parallel/simulate). A group of tp devices
// is one rank. All replicas are assumed to do the same at the same time, which the rates of shared
// links account for. Gradients are reduced by a ring and weights are gathered. Invariant: pure.
#pragma once

#include <vector>

#include "parallel/generate/schedule_registry.h"
#include "parallel/plan/plan_memory.h"
#include "parallel/predict/unit_work.h"
#include "parallel/simulate/costs.h"

namespace concertina {

/// Memory of one device in bytes, by purpose.
struct PlanMemory {
  double weights = 0;  // and gradients
  double optimizer = 0;
  double activations = 0;  // all microbatches in flight, and temporary memory of one unit
  double reserved = 0;
  double total() const { return weights + optimizer + activations + reserved; }
};

struct StepPrediction {
  double seconds = 0;
  double compute = 0;    // seconds, mean over ranks, excluding the next two fields
  double again = 0;      // recomputation
  double group = 0;      // all-reduces within tensor-parallel groups
  double transfer = 0;   // exposed: how much less a step takes with free transfers
  double reduction = 0;  // exposed: the same with free reductions and gathers
  double update = 0;
  double bubble = 0;               // the rest of the step, mean over ranks
  std::vector<RowMemory> slots{};  // by rank
};

class CandidateModel {
 public:
  /// `problem` must outlive it.
  CandidateModel(const PlanProblem& problem, const PlanCandidate& candidate, WorkTable& table);

  /// Returns a lower bound on the step time of any plan of this candidate: the work of the busiest
  /// rank, the work that must precede its first action, and its part of the update.
  double least_seconds() const;
  /// Returns the estimated duration of a step: the work of the busiest rank plus the idle time from
  /// the schedule's closed form (Schedule::bubble).
  double likely_seconds() const;
  /// Sets all fields if `parts` (three simulations), otherwise only `seconds` and `slots` (one).
  StepPrediction simulated(bool parts) const;

  /// Returns the memory of the fullest rank. `rows` is plan_memory() of the pipeline's plan.
  PlanMemory memory(const std::vector<RowMemory>& rows) const;
  /// The same without a plan; may be a slight underestimate. `peaks`: by rank, the maximum number
  /// of (stage, microbatch) pairs between F and W; their stages are unknown.
  PlanMemory memory(const std::vector<int>& peaks) const;
  /// Parameters on one device of this rank's group.
  double parameters(int rank) const { return ranks_[static_cast<std::size_t>(rank)].parameters; }

 private:
  /// Bytes per stage and microbatch on one device: kept from F to W in addition to the stage's
  /// input, and from I to W.
  struct StageBytes {
    double saved = 0, grads = 0;
  };
  /// A rank of the pipeline: parameters on one device of its group, and seconds per step.
  struct Rank {
    double parameters = 0;
    int units = 0;
    double scratch = 0;    // temporary memory of a backward pass, in bytes
    double seconds = 0;    // per microbatch, on all of its stages
    double exchange = 0;   // exchanging gradients of parameters shared with other ranks of the
                           // pipeline
    double reduction = 0;  // reducing gradients, after the last backward
    double gather = 0;     // gathering updated weights
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
  std::vector<LinkCosts> links_;      // by rank: link to the next one (the last: to the first)
  double recompute_ = 0, group_ = 0;  // seconds per microbatch, all stages
};

/// Number of simulated actions, including transfers; counts against the budget.
double simulated_actions(const PlanCandidate& candidate, int microbatches);

}  // namespace concertina
