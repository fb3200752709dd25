#include "parallel/plan/assignment.h"

#include <algorithm>

#include "core/error.h"
#include "parallel/plan/plan_index.h"

namespace concertina {

namespace {

/// Number of batches of `job` whose microbatches `layout` covers.
int batches_of_layout(const Job& job, const Layout& layout) {
  int microbatches = 0;
  for (const Pipeline& pipeline : layout.pipelines)
    microbatches = std::max(microbatches, pipeline.last_microbatch);
  CONCERTINA_CHECK(microbatches > 0 && microbatches % job.microbatches == 0,
                   "a layout of {} microbatches for batches of {}", microbatches, job.microbatches);
  return microbatches / job.microbatches;
}

/// Returns the cost of updating a whole tensor beyond that of its elements.
ExtraCost extra_cost(const Job& job) {
  if (job.update_flops.empty()) return {};
  return [&job](const BucketTensor& tensor) {
    return job.update_flops.at(static_cast<std::size_t>(tensor.unit))
               .at(static_cast<std::size_t>(tensor.parameter)) /
           kFlopsPerElement;
  };
}

}  // namespace

Assignment make_assignment(const Job& job, Layout layout, Plan plan, int world) {
  const int frozen = layout.frozen_units, batches = batches_of_layout(job, layout);
  Assignment made{.world = std::max(world, rank_count(layout)),
                  .layout = std::move(layout),
                  .plan = std::move(plan),
                  .buckets = make_buckets(job.model, frozen),
                  .owners = {},
                  .costs = training_costs(job.model, frozen),
                  .working = {},
                  .keeps_frozen_state = job.keeps_frozen_state,
                  .batches = batches};
  made.plan.rows.resize(static_cast<std::size_t>(made.world));
  made.owners = assign_owners(made.buckets, made.layout, job.whole_tensors, extra_cost(job));
  made.working = working_ranks(made.layout);
  return made;
}

int Assignment::working_index(int rank) const {
  const auto place = std::lower_bound(working.begin(), working.end(), rank);
  CONCERTINA_CHECK(place != working.end() && *place == rank, "rank {} has no stage", rank);
  return static_cast<int>(place - working.begin());
}

std::int64_t parameter_count(const std::vector<Bucket>& buckets) {
  std::size_t count = 0;
  for (const Bucket& bucket : buckets)
    for (const BucketTensor& tensor : bucket.tensors) count += tensor.count;
  return static_cast<std::int64_t>(count);
}

}  // namespace concertina
