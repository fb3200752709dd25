// A batch that grows with the number of replicas: in PipeTransformer (He et al., ICML 2021), every
// replica keeps its batch size when freed ranks become replicas.
// Invariant: pure. All step counts assume the config's batch size; a grown step does the work of
// several steps at once, with one update, and their number divides the run's remaining steps.
#pragma once

#include "parallel/repartition/layout_policy.h"

namespace concertina {

/// Number of replicas of `layout`, created for `request`; a replica may have two pipelines.
int replicas_of(const Request& request, const Layout& layout);

/// Returns the number of batches per step with `replicas` replicas in a run that began with `first`
/// replicas and one batch: as many per replica as at the start, if the number is an integer that
/// divides `steps_left`; otherwise the next smaller number that does, at least 1.
int grown_batches(int replicas, int first, std::int64_t steps_left);

/// The same for a layout chosen in `view`; unchanged if its options do not let the batch grow. With
/// at least the current number of replicas, the batch never shrinks, so a run resumed on fewer
/// ranks continues unchanged.
int batches_for(const LayoutView& view, int replicas);

/// Whether the step's gradient sum has a leaf for every pipeline of `replicas` replicas with
/// `pipelines` pipelines each.
bool has_leaves_for(const LayoutView& view, int replicas, int pipelines);

/// Returns the largest number of replicas up to `most` for which has_leaves_for() is true; 0: none.
int most_replicas(const LayoutView& view, int most, int pipelines);

/// Extends `layout`, which is for one batch, to `batches` per step: pipelines keep their shares.
Layout with_batches(Layout layout, int batches);

}  // namespace concertina
