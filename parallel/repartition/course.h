// Predicts the times of a run that freezes layers, epoch by epoch, before its launch.
// Invariant: pure; valid if the freezes are known in advance and units take the forecast times.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "parallel/repartition/layout_policy.h"

namespace concertina {

struct CourseEpoch {
  int layers = 0;  // number of frozen layers
  std::int64_t steps = 0;
  std::string layout;    // describe()
  bool changed = false;  // whether frozen layers or layout differ from those of the previous epoch
  double change_s = 0;   // duration of the preceding change
  int batches = 1;       // per step
  double step_s = 0;     // per step
  double late_s = 0;     // extra time of the steps before a change on demand
  double seconds() const { return change_s + late_s + step_s * static_cast<double>(steps); }
};

double seconds_of(const std::vector<CourseEpoch>& epochs);

/// A requested run, and the policy that decides its layouts.
struct CourseInput {
  const Job& job;
  const Request& asked;
  const LayoutPolicy& policy;
  LayoutOptions options{};
  std::int64_t every = 0;  // steps until the first decision on demand; 0: none
  ForecastInput forecast{};
  std::function<void(std::size_t epoch)> progress{};  // called with the next epoch
};

/// Returns the number of steps in each of `epochs` epochs of `samples` samples. A step that ends in
/// the next epoch counts toward the epoch in which it begins.
std::vector<std::int64_t> steps_of_epochs(std::int64_t samples, std::int64_t batch, int epochs);

/// `layers[e]` is the number of frozen layers in epoch e, decided at its start; `steps[e]` is its
/// number of steps. With a cache, the epoch after a freeze reads the outputs of layers that were
/// already frozen and computes those of the others once. Throws Error{bad_input} like assign().
std::vector<CourseEpoch> predict_course(const CourseInput& input, const std::vector<int>& layers,
                                        const std::vector<std::int64_t>& steps);

/// Returns a lower bound on the time that the steps of `epochs` take with any layouts of the ranks:
/// equal shares of the work without waits, changes or reads. With `keeps_grid`, pp and dp (and thus
/// gpipe's bubble) stay as requested.
double least_seconds(const CourseInput& input, const std::vector<CourseEpoch>& epochs,
                     bool keeps_grid = false);

/// Returns the fraction of a step of `assignment`, if nothing is frozen, that is spent outside
/// layers, over all ranks: other units, loading, norms, updates and packing. Excludes waits.
double fixed_share(const Job& job, const Assignment& assignment, const ForecastInput& input);

}  // namespace concertina
