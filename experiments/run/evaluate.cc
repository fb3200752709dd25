#include "experiments/run/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/error.h"
#include "experiments/run/gather.h"

namespace concertina {

Validation evaluate(RankEngine& engine, std::shared_ptr<const TextDataset> dataset,
                    std::int64_t batches, const std::function<bool()>& stop) {
  const RunPlan& run = engine.run();
  ValidationSource source(std::move(dataset), run.samples * run.microbatches);
  Validation result;
  result.batches = batches == 0 ? source.batches() : std::min(batches, source.batches());
  for (std::int64_t batch = 0; batch < result.batches; ++batch) {
    engine.evaluate(batch, run.microbatches, source);
    const std::vector<double>& mine = engine.executor().losses();
    if (engine.watchdog() != nullptr) engine.watchdog()->at("gather of held-out losses");
    const std::vector<double> all = gather_values(engine.world(), mine);
    // One rank has a microbatch's loss, the others have 0: this order of sums is the microbatches'.
    for (std::size_t m = 0; m < mine.size(); ++m)
      for (std::size_t i = m; i < all.size(); i += mine.size()) result.loss += all[i];
    result.targets += source.valid_targets(batch);
    if (!std::isfinite(result.loss))
      throw_failure("the held-out loss is not finite: the model has diverged",
                    fmt::format("batch {} of the held-out text", batch), kDivergedAdvice);
    if (stop && stop()) break;
  }
  if (result.targets > 0) result.loss /= static_cast<double>(result.targets);
  return result;
}

}  // namespace concertina
