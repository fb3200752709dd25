// The layouts that a search looks at: tensor-parallel group x pipeline x replicas x chunks x
// schedule x size of a microbatch x recomputation.
// Invariant: pure; every combination within the space that the batch, the layers and the schedule
// allow is there once, in one order.
#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "experiments/config/config.h"
#include "experiments/planner/gpt_flops.h"
#include "experiments/planner/software.h"

namespace concertina {

struct PlanCandidate {
  int tp = 1, pp = 1, dp = 1;  // a group of tp devices works as one rank
  int chunks = 1;
  std::string_view schedule = "1f1b";  // of the registry
  int samples = 1;                     // of a microbatch
  Recompute recompute = Recompute::none;
  bool operator==(const PlanCandidate&) const = default;

  int world() const { return tp * pp * dp; }
  int stages() const { return pp * chunks; }
  /// The microbatches of one pipeline in a step.
  int microbatches(const RunConfig& config) const { return config.batch.global / samples / dp; }
  /// What this program can train.
  bool runs_here() const { return tp == 1 && recompute == Recompute::none; }
};

/// "tp8 pp4 dp4 1f1b, microbatches of 2, full recomputation".
std::string to_text(const PlanCandidate& candidate);

/// What is tried; an empty list is all that the model, the batch and the machine allow.
struct SearchSpace {
  int world = 1;
  int ranks_per_host = 0;  // bounds tp; 0: all on one host
  std::vector<int> tp{}, pp{}, samples{}, chunks{};
  std::vector<std::string> schedules{};
  std::vector<Recompute> recompute{};
};

/// The words of --tp, --schedules and so on; throws Error{bad_input} for an unknown one.
Recompute find_recompute(std::string_view name);

/// Throws Error{bad_input} if nothing divides as it must.
std::vector<PlanCandidate> plan_candidates(const RunConfig& config, const Software& software,
                                           const SearchSpace& space);

}  // namespace concertina
