// The batch that grows with the number of replicas: PipeTransformer (He et al., ICML 2021) lets
// every replica keep its own batch where freed ranks become replicas.
// Invariant: pure. A step is one batch of the config everywhere; a grown step does the work of
// several at once, with one update, and divides what is left of the run.
#pragma once

#include "parallel/repartition/layout_policy.h"

namespace concertina {

/// Replicas of `layout`, which was asked for by `request`: a replica may be of two pipelines.
int replicas_of(const Request& request, const Layout& layout);

/// Batches that one step of `replicas` replicas trains on, where the run began with `first` of them
/// and one batch: as many per replica as then, if that is a whole number that divides `steps_left`;
/// else the largest smaller number that does, 1 at least.
int grown_batches(int replicas, int first, std::int64_t steps_left);

/// The same for a choice of `view`; what it is now where its options do not let it grow. As many
/// replicas as now never do less at once: a run that resumes on fewer ranks goes on as it was.
int batches_for(const LayoutView& view, int replicas);

/// Whether so many replicas, of `pipelines` pipelines each, have a leaf of the step's gradient sum
/// for every pipeline.
bool has_leaves_for(const LayoutView& view, int replicas, int pipelines);

/// The most replicas up to `most` that have; 0: none.
int most_replicas(const LayoutView& view, int most, int pipelines);

/// `layout`, which is of one batch, for steps of `batches`: each pipeline has the same share.
Layout with_batches(Layout layout, int batches);

}  // namespace concertina
