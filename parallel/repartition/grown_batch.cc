#include "parallel/repartition/grown_batch.h"

#include <algorithm>

#include "core/error.h"

namespace concertina {

int replicas_of(const Request& request, const Layout& layout) {
  const int pipelines = static_cast<int>(layout.pipelines.size());
  return request.file ? pipelines : pipelines / folding_of(request).pipelines();
}

int grown_batches(int replicas, int first, std::int64_t steps_left) {
  CONCERTINA_CHECK(first > 0 && steps_left >= 0, "{} replicas at first, {} steps left", first,
                   steps_left);
  int batches = std::max(1, replicas / first);
  while (steps_left % batches != 0) --batches;
  return batches;
}

int batches_for(const LayoutView& view, int replicas) {
  if (!view.options.grows) return view.asked.batches;
  const int batches = grown_batches(replicas, view.start.replicas, view.steps_left);
  const bool as_now = replicas == replicas_of(view.asked, view.now.layout);
  return as_now ? std::max(batches, view.asked.batches) : batches;
}

bool has_leaves_for(const LayoutView& view, int replicas, int pipelines) {
  return replicas * pipelines <= view.job.leaves * batches_for(view, replicas);
}

int most_replicas(const LayoutView& view, int most, int pipelines) {
  while (most > 0 && !has_leaves_for(view, most, pipelines)) --most;
  return most;
}

Layout with_batches(Layout layout, int batches) {
  for (Pipeline& pipeline : layout.pipelines) {
    pipeline.first_microbatch *= batches;
    pipeline.last_microbatch *= batches;
  }
  return layout;
}

}  // namespace concertina
