// The most that freezing can gain, in closed form, for equal layers: the steps of PipeTransformer
// (He et al. 2021), one by one. Invariant: pure; ceilings, not predictions of a machine: moving and
// reading a cache cost nothing here.
#pragma once

#include <span>
#include <vector>

#include "parallel/policies/freeze_rules.h"

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

/// `frozen`: layers that are frozen during each epoch, in [0, layers], not falling; not empty.
/// Whole numbers, or real ones for the mean of many runs. No rung is below the one before it.
FreezeLadder freeze_ladder(std::span<const double> frozen, const LadderShape& shape);

/// Frozen layers during each of `epochs` epochs, with decisions at their ends, where the loss and
/// the learning rate stay and each layer has a smaller gradient norm than the one before: the
/// fastest course that pipetransformer allows. Error{bad_input}: the policy depends on more than
/// that.
std::vector<double> foreseen_course(const FreezeRules& rules, int epochs,
                                    std::int64_t steps_per_epoch);

}  // namespace concertina
