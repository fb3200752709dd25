#include "experiments/run/evaluate.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "core/clock.h"
#include "core/error.h"
#include "core/number_text.h"
#include "experiments/run/gather.h"

namespace concertina {

std::string text_share(const Validation& validation) {
  if (validation.targets == validation.of) return grouped(validation.of) + " tokens";
  return fmt::format("{} of {} tokens", grouped(validation.targets), grouped(validation.of));
}

Validation evaluate(Trainer& trainer, std::shared_ptr<const TextDataset> dataset,
                    std::int64_t batches, const std::function<bool()>& stop) {
  const double start = now();
  const Job& job = trainer.job();
  const std::int64_t samples = job.batch(), rows = job.model.rows();
  Validation result{.of = dataset->validation_targets()};
  ValidationSource source(std::move(dataset), samples, batches * kEvaluationBatch);
  const int together = trainer.assignment().batches;
  for (std::int64_t batch = 0; batch < source.batches(); batch += together) {
    // Microbatches of nothing but padding are left out.
    std::int64_t valid = 0;
    for (std::int64_t b = batch; b < std::min(batch + together, source.batches()); ++b)
      valid += source.valid_targets(b, samples);
    const std::vector<double>& mine =
        trainer.evaluate(batch, static_cast<int>((valid + rows - 1) / rows), source);
    if (trainer.watchdog() != nullptr) trainer.watchdog()->at("gather of held-out losses");
    const std::vector<double> all = gather_values(trainer.world(), mine);
    // One rank has a microbatch's loss, the others have 0: this order of sums is the microbatches'.
    for (std::size_t m = 0; m < mine.size(); ++m)
      for (std::size_t i = m; i < all.size(); i += mine.size()) result.loss += all[i];
    if (stop && stop()) break;
  }
  result.targets = source.targets();
  if (result.targets > 0) result.loss /= static_cast<double>(result.targets);
  result.seconds = now() - start;
  return result;
}

void require_finite(const Validation& validation, std::int64_t step) {
  if (std::isfinite(validation.loss)) return;
  throw_failure(fmt::format("the held-out loss is {}: the weights have diverged",
                            number_text(validation.loss)),
                fmt::format("step {}", step),
                "a lower optimizer.lr or a longer lr.warmup, in a run of another run.name");
}

}  // namespace concertina
