// One rank that runs a plan over stages of a test.
#pragma once

#include <functional>
#include <memory>
#include <vector>

#include "core/arena.h"
#include "core/backend.h"
#include "parallel/runtime/executor.h"

namespace concertina {

/// One bucket a unit, of `own` elements, and one of `tied` that the first and the last unit share.
std::vector<Bucket> tied_buckets(int units, int own, int tied, int frozen);

class TestRank {
 public:
  using MakeStage = std::function<std::unique_ptr<Stage>(const StagePlacement&,
                                                         const std::vector<Bucket>&, int frozen)>;
  /// References outlive it.
  TestRank(const Plan& plan, const Layout& layout, std::vector<Bucket> buckets, int microbatches,
           int leaves, Communicator& world, const MakeStage& make_stage);
  TestRank(const TestRank&) = delete;
  TestRank& operator=(const TestRank&) = delete;

  Executor& executor() { return executor_; }
  const std::vector<Bucket>& buckets() const { return buckets_; }
  /// Null on other ranks.
  Stage* stage(int s) const { return stages_[static_cast<std::size_t>(s)].get(); }
  /// The part of a bucket that this rank owns: null if it has none, or if the bucket is frozen.
  const Part* own_part(std::size_t bucket) const;
  /// At STEP: the sum of that part's gradients.
  View reduced(std::size_t bucket) const { return exchange_.reduced(static_cast<int>(bucket)); }

 private:
  std::vector<Stage*> make_stages(const Layout& layout, const MakeStage& make_stage);

  Communicator& world_;
  const std::vector<Bucket> buckets_;
  std::vector<BucketOwners> owners_;
  std::vector<std::unique_ptr<Stage>> stages_;
  std::unique_ptr<Backend> backend_;
  GradientExchange exchange_;
  Executor executor_;
  std::unique_ptr<Groups> groups_;
  Arena arena_;
};

}  // namespace concertina
