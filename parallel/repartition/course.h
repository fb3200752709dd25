// The times of a run that freezes layers, epoch by epoch, before anybody launches it.
// Invariant: pure; as far as what freezes when is known beforehand, and units take what the
// forecast says.
#pragma once

#include <functional>
#include <string>
#include <vector>

#include "parallel/repartition/layout_policy.h"

namespace concertina {

struct CourseEpoch {
  int layers = 0;  // that are frozen during it
  std::int64_t steps = 0;
  std::string layout;    // describe()
  bool changed = false;  // what is frozen, or the layout, against the epoch before
  double change_s = 0;   // the change before it
  int batches = 1;       // that its steps do at once
  double step_s = 0;     // one of its steps
  double late_s = 0;     // what steps before a change on demand take more than those after it
  double seconds() const { return change_s + late_s + step_s * static_cast<double>(steps); }
};

double seconds_of(const std::vector<CourseEpoch>& epochs);

/// A run as it is asked for, and what decides its layouts.
struct CourseInput {
  const Job& job;
  const Request& asked;
  const LayoutPolicy& policy;
  LayoutOptions options{};
  std::int64_t every = 0;  // steps until the first decision on demand; 0: there is none
  ForecastInput forecast{};
  std::function<void(std::size_t epoch)> progress{};  // told which one comes next
};

/// Steps of each of `epochs` epochs of `samples` samples; a step that ends in the next epoch counts
/// for the one in which it begins.
std::vector<std::int64_t> steps_of_epochs(std::int64_t samples, std::int64_t batch, int epochs);

/// `layers[e]`: layers that are frozen during epoch e, decided at its start; `steps[e]`: its steps.
/// With a cache, the epoch after a freeze reads what was frozen before and computes the rest once.
/// Throws Error{bad_input} as assign() does.
std::vector<CourseEpoch> foresee(const CourseInput& input, const std::vector<int>& layers,
                                 const std::vector<std::int64_t>& steps);

/// Seconds that steps of `epochs` take at least, on any layouts of the ranks: their work in equal
/// shares, without any wait, change or read. `keeps_grid`: pp and dp stay as they are asked for, so
/// that gpipe's bubble stays, too.
double least_seconds(const CourseInput& input, const std::vector<CourseEpoch>& epochs,
                     bool keeps_grid = false);

/// The share of an unfrozen step of `assignment` outside of the layers, over all ranks: the model's
/// other units, loading, norms, updates and packing. Waits are in neither.
double fixed_share(const Job& job, const Assignment& assignment, const ForecastInput& input);

}  // namespace concertina
