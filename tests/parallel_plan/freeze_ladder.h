// The most that freezing can gain, in closed form, for equal layers whose forward pass, input
// gradient and weight gradient take as long each: the steps of PipeTransformer (He et al. 2021),
// one by one. An oracle for what `plan freeze` calls ceilings, which are of any units. Invariant:
// pure; moving and reading a cache cost nothing here.
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

namespace concertina {

struct LadderShape {
  int layers = 0;        // of the model
  int stages = 1;        // of the static pipeline, equal ones; also the ranks
  int microbatches = 1;  // of a step
};

/// Speed-ups of a whole run.
struct Rung {
  double over_gpipe = 1;  // over the unfrozen run on the static pipeline, scheduled by gpipe
  double over_best = 1;   // over the unfrozen run on the best static layout: replicas, no pipeline
};

struct FreezeLadder {
  Rung freeze;  // backward work below the frontier is left out; the pipeline stays as it is
  /// And as many stages as before share what is left equally, in forward and in backward: gpipe's
  /// bubble stays. The paper's AutoPipe without replicas.
  Rung repack;
  Rung replicas;  // and ranks become replicas: all of them always have equal work, without a bubble
  Rung cache;     // and frozen layers run once per sample, when the frontier passes them
};

/// A step of gpipe on stages of as many layers each, of which the first `frozen` are frozen: all
/// forwards, then all backwards, of which the last stage has most to train.
inline double gpipe_step(const LadderShape& shape, double frozen) {
  const double share = static_cast<double>(shape.layers) / shape.stages;
  const double trained = shape.layers - frozen, most = std::min(share, trained);
  return shape.layers + 2 * trained + (shape.microbatches - 1) * (share + 2 * most);
}

/// `frozen`: layers that are frozen during each epoch, in [0, layers], not falling; not empty.
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
  // A step of gpipe takes so much longer than the same work on replicas.
  const double bubble = unfrozen * shape.stages / (work * shape.microbatches);
  const double freeze = unfrozen / pipeline, equal = work / left, cache = work / cached;
  return {.freeze = {freeze, freeze / bubble},
          .repack = {equal, equal / bubble},
          .replicas = {equal * bubble, equal},
          .cache = {cache * bubble, cache}};
}

}  // namespace concertina
