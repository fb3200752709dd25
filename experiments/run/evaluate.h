// Loss on the validation part, at any layout.
#pragma once

#include <functional>
#include <memory>

#include "experiments/run/rank_engine.h"
#include "io/text_dataset.h"

namespace concertina {

struct Validation {
  double loss = 0;  // mean over the targets, nats
  std::int64_t targets = 0, batches = 0;
};

/// The first `batches` global batches of the validation part (0: all of it). Collective; the same
/// bits at any layout: losses are summed in microbatch order. No targets: loss 0. A loss that is
/// not finite is a failure, on every rank. `stop`, asked after each batch on all ranks with the same
/// answer, ends it early.
Validation evaluate(RankEngine& engine, std::shared_ptr<const TextDataset> dataset,
                    std::int64_t batches, const std::function<bool()>& stop = {});

}  // namespace concertina
