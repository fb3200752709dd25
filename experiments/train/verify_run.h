// Checks that a run's results with its freeze policy, cache and layout policy are bit-identical to
// those without the cache and the layout policy. Invariant: both train from the same weights in one
// launch; every rank compares and returns the same result.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/launch/launch.h"

namespace concertina {

/// The values of training after one step, which are bit-identical in every layout.
struct StepTrace {
  double loss = 0, grad_norm = 0;
  int frozen_units = 0;
  std::vector<double> squares{};  // of the gradient of each bucket
  std::string layout{};           // current layout; not compared
};

struct RunVerdict {
  std::int64_t steps = 0;
  int freezes = 0, layouts = 0;       // changes in the run with its policies
  std::uint64_t cached = 0;           // samples that it read from the cache
  std::int64_t first_step = 0;        // first step after which something differed; 0: none
  std::vector<std::string> differ{};  // differing values: loss, gradient norm, frozen units, units
  std::string layout{};               // of the run with its policies at that step
  bool same() const { return differ.empty(); }
  /// Whether any policy or the cache had an effect; otherwise the two runs were identical.
  bool exercised() const { return freezes + layouts > 0 || cached > 0; }
};

/// Trains `steps` steps of `launch`'s config twice: in its initial layout without a cache, then
/// with all its policies. `launch` has begun with the command "train". Throws Error{bad_input} for
/// elastic.batch = "grows", which trains different steps by design. Collective.
RunVerdict verify_run(Launch& launch, std::int64_t steps);

}  // namespace concertina
