// The most that freezing can gain, in closed form, for equal layers: the steps of PipeTransformer
// (He et al. 2021), one by one. An oracle for what `plan freeze` calls ceilings, which are of any
// units. Invariant: pure; moving and reading a cache cost nothing here.
#pragma once

#include <algorithm>
#include <numeric>
#include <span>
#include <vector>

#include "core/error.h"

namespace concertina {

struct LadderShape {
  int layers = 0;        // of the model
  int stages = 1;        // of the static pipeline, equal ones; also the ranks
  int microbatches = 1;  // of a step
  /// Share of an unfrozen step outside of the layers (embedding, head, update, data), in [0, 1).
  double fixed = 0;
  /// Times of a layer per sample, in any unit: forward, input gradient and weight gradient.
  double forward = 1, input = 1, weight = 1;
  double frozen = 0;  // forward of a frozen layer, which keeps nothing; 0: as of others
  /// The part of `input` that the first layer that trains leaves out where others before it are
  /// frozen: the input gradient of its first half.
  double first_input = 0;
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

inline double frozen_forward(const LadderShape& shape) {
  return shape.frozen > 0 ? shape.frozen : shape.forward;
}

/// The longest path through `microbatches` equal jobs that pass the stages one after the other.
inline double flow(const std::vector<double>& stages, int microbatches) {
  return std::accumulate(stages.begin(), stages.end(), 0.0) +
         (microbatches - 1) * *std::max_element(stages.begin(), stages.end());
}

/// The backward pass through `trained` layers, of which the first trained one of the model is one
/// where `first`.
inline double backward_of(const LadderShape& shape, double trained, bool first) {
  const double left_out = first ? shape.first_input * std::min(1.0, trained) : 0;
  return (shape.input + shape.weight) * trained - left_out;
}

/// A step of gpipe: all forwards, then all backwards (the last stage ends its forwards last), on
/// stages of as many layers each.
inline double gpipe_step(const LadderShape& shape, double frozen) {
  const double share = static_cast<double>(shape.layers) / shape.stages;
  std::vector<double> forward, backward;
  for (int s = 1; s <= shape.stages; ++s) {
    const double trained = std::clamp(s * share - frozen, 0.0, share);
    forward.push_back(trained * shape.forward + (share - trained) * frozen_forward(shape));
    backward.push_back(
        backward_of(shape, trained, frozen > 0 && trained > 0 && (s - 1) * share <= frozen));
  }
  return flow(forward, shape.microbatches) + flow(backward, shape.microbatches);
}

/// Time over that of the unfrozen run, where `layers` is that share of the layers' time.
inline double with_fixed(const LadderShape& shape, double layers) {
  return shape.fixed + (1 - shape.fixed) * layers;
}

/// `frozen`: layers that are frozen during each epoch, in [0, layers], not falling; not empty.
/// Whole numbers, or real ones for the mean of many runs. No rung is below the one before it.
inline FreezeLadder freeze_ladder(std::span<const double> frozen, const LadderShape& shape) {
  CONCERTINA_CHECK(!frozen.empty() && shape.layers >= 1 && shape.stages >= 1,
                   "{} epochs, {} layers on {} stages", frozen.size(), shape.layers, shape.stages);
  CONCERTINA_CHECK(shape.fixed >= 0 && shape.fixed < 1, "a fixed share of {}", shape.fixed);
  double pipeline = 0, left = 0, cached = 0, before = 0;
  for (const double f : frozen) {
    CONCERTINA_CHECK(f >= before && f <= shape.layers, "{} layers frozen after {}", f, before);
    const double trained = shape.layers - f;
    const double training = trained * shape.forward + backward_of(shape, trained, f > 0);
    pipeline += gpipe_step(shape, f);
    left += f * frozen_forward(shape) + training;
    cached += (f - before) * frozen_forward(shape) + training;
    before = f;
  }
  const double epochs = static_cast<double>(frozen.size());
  const double work = (shape.forward + shape.input + shape.weight) * shape.layers * epochs;
  const double unfrozen = gpipe_step(shape, 0) * epochs;
  // A step of gpipe takes so much longer than the same work on replicas.
  const double bubble = unfrozen * shape.stages / (work * shape.microbatches);
  const double freeze = 1 / with_fixed(shape, pipeline / unfrozen);
  // Equal stages and replicas do the same work, the former with the bubble of the unfrozen run.
  const double equal = 1 / with_fixed(shape, left / work);
  const double cache = 1 / with_fixed(shape, cached / work);
  return {.freeze = {freeze, freeze / bubble},
          .repack = {equal, equal / bubble},
          .replicas = {equal * bubble, equal},
          .cache = {cache * bubble, cache}};
}

}  // namespace concertina
