// Predicts the times of any assignment of a job, with or without a run.
// Invariant: pure after construction; equal inputs give equal forecasts on every rank.
#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "parallel/plan/assignment.h"
#include "parallel/predict/machine.h"

namespace concertina {

/// Cached outputs of frozen units, which are read, not recomputed, for a share of the samples.
struct CacheForecast {
  double share = 0;  // fraction of the samples, in [0, 1]; 0: nothing is cached
  double read_s_per_sample = 0;
};

/// `seconds` are the times of the units of `model` if units [0, before) are frozen. Returns the
/// times if units [0, frozen) are frozen, with frozen >= before: these only run forward, and units
/// that share a tensor with them have less work, in proportion to FLOPs.
std::vector<UnitSeconds> with_frozen_units(const ModelSpec& model, std::vector<UnitSeconds> seconds,
                                           int frozen, int before = 0);

struct ForecastInput {
  std::vector<UnitSeconds> units{};  // per microbatch, as if each unit trained
  MachineModel machine{};
  CacheForecast cache{};
  std::size_t kinds = 0;        // number of optimizer state tensors
  std::vector<int> hosts{};     // by rank; empty: a single host
  int cores = 0;                // per host, shared by its ranks; 0: one per rank
  std::size_t move_memory = 0;  // parallel.move_memory
  /// Returns why an assignment is impossible, or "" if it is not. Null: all are possible.
  std::function<std::string(const Assignment&)> refusal{};
};

class LayoutForecast {
 public:
  /// `now` is the assignment from which changes start, and in which `input.units` were measured if
  /// ranks share cores. Both `now` and `job` must outlive this object.
  LayoutForecast(const Job& job, const Assignment& now, ForecastInput input);
  /// The same forecast for changes from `now`, which must outlive the result.
  LayoutForecast from(const Assignment& now) const;

  /// Seconds per step of the run, even if the assignment executes several steps at once.
  double step_seconds(const Assignment& assignment) const;
  /// The same if only the outputs of units [0, cached) can be read.
  double step_seconds(const Assignment& assignment, int cached) const;
  /// Returns a lower bound on the step time of any assignment with this many working ranks: its
  /// work without waits. `batches` is the number of batches per step. `cached` is the number of
  /// units whose outputs can be read (default: all frozen ones).
  double least_seconds(int frozen_units, int ranks, int batches = 1,
                       std::optional<int> cached = {}) const;
  /// Estimated step time in seconds of dp replicas of pp ranks with `chunks` stages each: equal
  /// stages, the bubble of 1F1B, and all messages and gradients on the slowest link.
  double likely_seconds(int frozen_units, const Grid& grid, int chunks) const;
  /// Duration of a rank's work relative to the others (rank_factor()).
  double factor(int rank) const { return rank_factor(input_.machine, rank); }
  /// Combined speed of the `ranks` fastest ranks, as a number of ranks with factor 1.
  double speed(int ranks) const;
  /// Seconds of each unit per microbatch, for the passes that run, on a rank with factor 1.
  std::vector<double> unit_seconds(int frozen_units) const;
  /// Seconds that the change from the current assignment to `next` takes.
  double move_seconds(const Assignment& next) const;
  /// The same, or 0 if `next` is the current assignment.
  double change_seconds(const Assignment& next) const;
  /// Returns why `next` is impossible, for example because of a rank's memory; "" if it is not.
  std::string refusal(const Assignment& next) const;

 private:
  /// The remaining training work.
  struct Trained {
    std::vector<UnitSeconds> units;
    double elements = 0;
  };

  std::vector<UnitSeconds> seconds(int frozen, int cached) const;
  const Trained& trained(int frozen) const;
  /// By what factor a step takes longer because the ranks of `assignment` share cores.
  double shared(const Assignment& assignment, const Costs& costs) const;

  const Job* job_;
  const Assignment* now_;
  ForecastInput input_;
  double measured_ = 1;            // shared() of the assignment in which the units were measured
  std::vector<double> speeds_{0};  // by number of ranks: speed()
  mutable std::map<int, Trained> trained_;  // by frozen units
};

}  // namespace concertina
