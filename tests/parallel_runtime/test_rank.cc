#include "tests/parallel_runtime/test_rank.h"

#include <string>

#include "core/error.h"

namespace concertina {

std::vector<Bucket> tied_buckets(int units, int own, int tied, int frozen) {
  ModelSpec model;
  for (int u = 0; u < units; ++u) {
    UnitSpec& unit = model.units.emplace_back();
    unit.name = std::to_string(u);
    unit.parameters.push_back({"own", {own}, false, {}, ""});
    if (u == 0 || u == units - 1) unit.parameters.push_back({"tied", {tied}, false, {}, "tied"});
  }
  return make_buckets(model, frozen);
}

TestRank::TestRank(const Plan& plan, const Layout& layout, std::vector<Bucket> buckets,
                   int microbatches, int leaves, Communicator& world, const MakeStage& make_stage)
    : world_(world),
      buckets_(std::move(buckets)),
      owners_(assign_owners(buckets_, layout)),
      backend_(make_cpu_backend(1)),
      exchange_(buckets_, owners_, layout, plan, world.rank(), microbatches, leaves),
      executor_(layout, plan, make_stages(layout, make_stage), world.rank(), microbatches,
                backend_->clock()) {
  std::vector<std::vector<int>> holders;
  for (const BucketOwners& owners : owners_) holders.push_back(owners.ranks);
  groups_ = std::make_unique<Groups>(world, holders);
  const std::size_t bytes =
      executor_.saved_bytes() + executor_.boundary_bytes() + executor_.loss_bytes();
  arena_.reserve(bytes + exchange_.sum_bytes() + exchange_.staging_bytes());
  executor_.attach(arena_, host_memory());
  CONCERTINA_CHECK(arena_.used() == bytes, "the executor takes other memory than it says");
  exchange_.attach(arena_);
  exchange_.connect(*groups_, *backend_);
  executor_.connect(world, exchange_, nullptr);
}

std::vector<Stage*> TestRank::make_stages(const Layout& layout, const MakeStage& make_stage) {
  std::vector<Stage*> result;
  for (int s = 0; s < layout.stage_count(); ++s) {
    const StagePlacement& at = layout.stage(s);
    stages_.push_back(at.rank == world_.rank() ? make_stage(at, buckets_, layout.frozen_units)
                                               : nullptr);
    result.push_back(stages_.back().get());
  }
  return result;
}

const Part* TestRank::own_part(std::size_t bucket) const {
  const int me = owners_[bucket].index_of(world_.rank());
  return me < 0 || buckets_[bucket].frozen ? nullptr
                                           : &owners_[bucket].parts[static_cast<std::size_t>(me)];
}

}  // namespace concertina
