// A run with its freeze policy, cache and layout policy against the same run without cache and
// layout policy: whether training took the same bits.
// Invariant: both train from the same weights in one launch; every rank compares and says the same.
#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "experiments/launch/launch.h"

namespace concertina {

/// The figures of training after one step, which are the same bits at every layout.
struct StepTrace {
  double loss = 0, grad_norm = 0;
  int frozen_units = 0;
  std::vector<double> squares{};  // of the gradient of each bucket
  std::string layout{};           // of now; not compared
};

struct RunVerdict {
  std::int64_t steps = 0;
  int freezes = 0, layouts = 0;       // changes of the run with its policies
  std::uint64_t cached = 0;           // samples that it read from the cache
  std::int64_t first_step = 0;        // after which something differed; 0: nothing did
  std::vector<std::string> differ{};  // what, then: loss, gradient norm, frozen units, units
  std::string layout{};               // of the run with its policies, then
  bool same() const { return differ.empty(); }
  /// Whether any policy or cache did something: else the two runs were one and the same.
  bool exercised() const { return freezes + layouts > 0 || cached > 0; }
};

/// Trains `steps` steps of the config of `launch` twice: at the layout that it begins with and
/// without a cache, then with all its policies. `launch` has begun with the command "train". Throws
/// Error{bad_input} for elastic.batch = "grows", which trains other steps on purpose. Collective.
RunVerdict verify_run(Launch& launch, std::int64_t steps);

}  // namespace concertina
