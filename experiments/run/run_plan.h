// From a config and a world size to everything that is decided before a run has any memory: the
// model, who holds what, and the order of every action.
// Invariant: pure; the same on every rank, and the same whether ranks exist or not.
#pragma once

#include <memory>
#include <string>
#include <vector>

#include "experiments/config/config.h"
#include "models/model.h"
#include "parallel/generate/schedule_registry.h"
#include "parallel/runtime/ownership.h"

namespace concertina {

struct RunPlan {
  std::unique_ptr<Model> model;
  std::vector<Bucket> buckets;
  Layout layout;
  Plan plan;
  std::vector<BucketOwners> owners;  // of each bucket
  std::vector<UnitCost> costs;       // of each unit, as far as it trains
  int world = 1, microbatches = 1, leaves = 1;
  std::int64_t samples = 1, tokens = 1;  // of a microbatch, of a sample

  std::int64_t rows() const { return samples * tokens; }
};

/// Throws Error{bad_input} if the world size, the model and the layout do not go together. Where
/// the layout that `config` asks for fits another number N of ranks, the error says to try
/// `launch` with N for its {}.
RunPlan make_run_plan(const RunConfig& config, int world, const std::string& launch = {});

/// Elements of all its tensors; a shared one counts once.
std::int64_t parameter_count(const RunPlan& run);

/// Of `numerics.compute`.
Precision precision_of(const RunConfig& config);

/// Of `parallel.schedule` and `parallel.chunks`.
Folding schedule_folding(const RunConfig& config);

/// "pp2xdp2" (ranks a replica, replicas), or "2+1" for pipelines of different depth.
std::string short_form(const Layout& layout);

}  // namespace concertina
