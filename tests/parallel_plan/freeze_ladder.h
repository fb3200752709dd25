// The largest possible gain of freezing in closed form, for equal layers whose forward pass, input
// gradient and weight gradient take equal time: the mechanisms of PipeTransformer (He et al. 2021),
// one by one. An oracle for the ceilings of `plan freeze`, which are for any units.
// Invariant: pure; moves and reads of the cache are free.
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

namespace concertina {

struct LadderShape {
  int layers = 0;        // layers of the model
  int stages = 1;        // equal stages, also ranks, of the static pipeline
  int microbatches = 1;  // microbatches per step
};

/// Speed-ups of a whole run.
struct Rung {
  double over_gpipe = 1;  // over the unfrozen run on the static pipeline, scheduled by gpipe
  double over_best = 1;   // over the unfrozen run on the best static layout: replicas, no pipeline
};

struct FreezeLadder {
  Rung freeze;  // no backward work below the frontier; the pipeline is unchanged
  /// Also, the remaining work is divided equally between as many stages as before, for forward and
  /// backward; gpipe's bubble remains. The paper's AutoPipe without replicas.
  Rung repack;
  Rung replicas;  // also, ranks become replicas with equal work and without a bubble
  Rung cache;     // also, frozen layers run once per sample, when the frontier passes them
};

/// Returns the time of a gpipe step on stages with equally many layers, the first `frozen` of them
/// frozen: all forwards, then all backwards, most of them on the last stage.
inline double gpipe_step(const LadderShape& shape, double frozen) {
  const double share = static_cast<double>(shape.layers) / shape.stages;
  const double trained = shape.layers - frozen, most = std::min(share, trained);
  return shape.layers + 2 * trained + (shape.microbatches - 1) * (share + 2 * most);
}

/// `frozen`: the frozen layers during each epoch, in [0, layers], never decreasing; not empty.
inline FreezeLadder freeze_ladder(std::span<const double> frozen, const LadderShape& shape) {
  double pipeline = 0, left = 0, cached = 0, before = 0;
  for (const double f : frozen) {
    const double training = 3 * (shape.layers - f);
    pipeline += gpipe_step(shape, f);
    left += f + training;
    cached += f - before + training;
    before = f;
  }
  const double epochs = static_cast<double>(frozen.size()), work = 3 * shape.layers * epochs;
  const double unfrozen = gpipe_step(shape, 0) * epochs;
  // How much longer a gpipe step takes than the same work on replicas.
  const double bubble = unfrozen * shape.stages / (work * shape.microbatches);
  const double freeze = unfrozen / pipeline, equal = work / left, cache = work / cached;
  return {.freeze = {freeze, freeze / bubble},
          .repack = {equal, equal / bubble},
          .replicas = {equal * bubble, equal},
          .cache = {cache * bubble, cache}};
}

}  // namespace concertina
