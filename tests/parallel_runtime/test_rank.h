// One rank that runs a plan with a test's stages.
#pragma once

#include <functional>
#include <memory>
#include <string>
#include <vector>

#include "core/arena.h"
#include "core/backend.h"
#include "parallel/runtime/executor.h"
#include "parallel/runtime/state.h"

namespace concertina {

/// Returns a job of `units` units with `own` elements each, and `tied` shared by the first and the
/// last. Unit u reads the field `reads[u]` of `rows` numbers per microbatch; "" reads none.
Job tied_job(int units, int own, int tied, int microbatches, int leaves, int rows = 1,
             std::vector<std::string> reads = {});

/// Every field of row r of microbatch m is m * rows + r.
class NumberedRows final : public BatchSource {
 public:
  explicit NumberedRows(const Job& job) : fields_(fields_of(job.model)) {}
  std::span<const Field> fields() const override { return fields_; }
  void load(std::int64_t step, std::int64_t first, std::int64_t count,
            std::span<const View> views) override;
  std::int64_t valid_targets(std::int64_t, std::int64_t samples) const override { return samples; }

 private:
  std::vector<Field> fields_;
};

class TestRank {
 public:
  using MakeStage = std::function<std::unique_ptr<Stage>(const StagePlacement&,
                                                         const std::vector<Bucket>&, int frozen)>;
  /// The referenced objects must outlive it. Its batch has NumberedRows.
  TestRank(const Plan& plan, const Layout& layout, Job job, Communicator& world,
           const MakeStage& make_stage);
  TestRank(const TestRank&) = delete;
  TestRank& operator=(const TestRank&) = delete;

  Executor& executor() { return executor_; }
  StepInput input(float loss_scale) const { return {.batch = &batch_, .loss_scale = loss_scale}; }
  const std::vector<Bucket>& buckets() const { return assignment_.buckets; }
  /// Returns null on other ranks.
  Stage* stage(int s) const { return stages_[s].get(); }
  /// Returns this rank's part of a bucket, or null if it has none or the bucket is frozen.
  const Part* own_part(std::size_t bucket) const {
    return own_state(assignment_, bucket, world_.rank());
  }
  /// At STEP: returns the sum of that part's gradients.
  View reduced(std::size_t bucket) const { return exchange_.reduced(static_cast<int>(bucket)); }

 private:
  std::vector<Stage*> make_stages(const Layout& layout, const MakeStage& make_stage);

  Communicator& world_;
  const Job job_;
  const Assignment assignment_;
  std::vector<std::unique_ptr<Stage>> stages_;
  std::unique_ptr<Backend> backend_;
  GradientExchange exchange_;
  Executor executor_;
  StepBatch batch_;
  std::unique_ptr<Groups> groups_;
  Arena arena_;
};

}  // namespace concertina
