// The predicted times of any assignment of a job: of a run, or of one that nobody has launched.
// Invariant: pure once made; the same inputs give the same forecast on every rank.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "parallel/plan/assignment.h"
#include "parallel/predict/machine.h"

namespace concertina {

/// The cached outputs of frozen units: for a share of the samples they are read, in place of being
/// computed again.
struct CacheForecast {
  double share = 0;  // of the samples, in [0, 1]; 0: nothing is cached
  double read_s_per_sample = 0;
};

/// `seconds`: of units of `model` of which [0, before) are frozen. Returns those where [0, frozen)
/// are, at least as many: these only run forward, and what shares a tensor with them has so much
/// less to do, by FLOPs.
std::vector<UnitSeconds> with_frozen_units(const ModelSpec& model, std::vector<UnitSeconds> seconds,
                                           int frozen, int before = 0);

struct ForecastInput {
  std::vector<UnitSeconds> units{};  // of a microbatch, each as if it trains
  MachineModel machine{};
  CacheForecast cache{};
  std::size_t kinds = 0;        // of optimizer state
  std::vector<int> hosts{};     // by rank; empty: one
  int cores = 0;                // of each host, for all its ranks; 0: one for each rank
  std::size_t move_memory = 0;  // parallel.move_memory
  /// Why an assignment cannot be; empty: it can. Null: all can.
  std::function<std::string(const Assignment&)> refusal{};
};

class LayoutForecast {
 public:
  /// `now`: what a change starts from, and `input.units` were measured in where ranks share cores.
  /// It and `job` outlive this.
  LayoutForecast(const Job& job, const Assignment& now, ForecastInput input);
  /// The same forecast of changes from `now`, which outlives it.
  LayoutForecast from(const Assignment& now) const;

  /// Seconds of one step of the run; where the assignment does several at once, of each of them.
  double step_seconds(const Assignment& assignment) const;
  /// The same where the outputs of units [0, cached) alone are there to be read.
  double step_seconds(const Assignment& assignment, int cached) const;
  /// Seconds of a step that no assignment of so many working ranks falls below: its work, without
  /// any wait. `batches`: that a step does at once. `cached`: the units whose outputs can be read;
  /// by default all frozen ones.
  double least_seconds(int frozen_units, int ranks, int batches = 1,
                       std::optional<int> cached = {}) const;
  /// Seconds that a step of dp replicas of pp ranks with `chunks` stages each would take, about:
  /// stages are alike, the bubble is 1F1B's, messages and gradients go over the slowest link.
  double likely_seconds(int frozen_units, const Grid& grid, int chunks) const;
  /// How many times as long a rank takes as the others (rank_factor()).
  double factor(int rank) const { return rank_factor(input_.machine, rank); }
  /// The work of so many ranks, the fastest ones, in ranks of factor 1.
  double speed(int ranks) const;
  /// Seconds that each unit takes of a microbatch, as far as it trains, on a rank of factor 1.
  std::vector<double> unit_seconds(int frozen_units) const;
  /// Seconds of the change from what the run has now to `next`.
  double move_seconds(const Assignment& next) const;
  /// The same; 0 where that is what the run has.
  double change_seconds(const Assignment& next) const;
  /// Why `next` cannot be, such as a rank's memory; empty: it can.
  std::string refusal(const Assignment& next) const;

 private:
  /// What is left to train.
  struct Trained {
    std::vector<UnitSeconds> units;
    double elements = 0;
  };

  std::vector<UnitSeconds> seconds(int frozen, int cached) const;
  const Trained& trained(int frozen) const;
  /// How much longer the ranks of `assignment` take for a step where they share cores.
  double shared(const Assignment& assignment, const Costs& costs) const;

  const Job* job_;
  const Assignment* now_;
  ForecastInput input_;
  double measured_ = 1;                     // shared() of what the units were measured in
  std::vector<double> speeds_{0};           // speed() of so many ranks
  mutable std::map<int, Trained> trained_;  // by frozen units
};

}  // namespace concertina
