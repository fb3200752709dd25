#include "tests/integration/training.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/rng.h"
#include "experiments/run/checkpoint_writer.h"
#include "experiments/run/run_checkpoint.h"
#include "experiments/run/run_identity.h"
#include "experiments/run/state_hash.h"
#include "tests/threads/thread_communicator.h"

namespace concertina {

void SyntheticSource::load(std::int64_t step, std::int64_t first, std::int64_t count,
                           std::span<const View> views) {
  const View tokens = views[0], targets = views[1];
  const Rng rng(7, Purpose::sample);
  for (std::int64_t sample = 0; sample < count; ++sample) {
    const auto token = [&](std::int64_t at) {
      const auto words =
          rng.words(static_cast<std::uint32_t>(step), static_cast<std::uint32_t>(first + sample), 0,
                    static_cast<std::uint32_t>(at / 3));
      return static_cast<std::int32_t>(words[0] % static_cast<unsigned>(vocabulary_));
    };
    for (std::int64_t i = 0; i < tokens_; ++i) {
      if (!tokens.empty()) tokens.i32()[sample * tokens_ + i] = token(i);
      if (!targets.empty()) targets.i32()[sample * tokens_ + i] = token(i + 1);
    }
  }
}

RunConfig small_config() {
  RunConfig config;
  config.model = {.layers = 3, .width = 48, .heads = 4, .context = 20, .vocab = 61};
  config.batch = {24, 12};
  config.run.steps = 20;
  config.run.threads = 1;
  config.lr.warmup = 3;
  return config;
}

RunConfig with_grid(RunConfig config, int pp, int dp, const std::string& schedule) {
  config.parallel.pp = pp;
  config.parallel.dp = dp;
  config.parallel.schedule = schedule;
  return config;
}

RunConfig with_layout(RunConfig config, Layout layout, const std::string& schedule) {
  config.parallel.layout = std::move(layout);
  config.parallel.schedule = schedule;
  return config;
}

std::ostream& operator<<(std::ostream& out, const Outcome& outcome) {
  return out << fmt::format("{} loss {:.17g} norm {:.17g}", outcome.state_sha256, outcome.loss,
                            outcome.grad_norm);
}

std::unique_ptr<Backend> cpu_backend(int threads) {
  return make_cpu_backend(threads);
}

Outcome train_rank(Communicator& world, const RunConfig& config, const Span& span,
                   const MakeBackend& make_backend, const std::function<void(double)>& each) {
  const auto backend = make_backend(config.run.threads);
  Trainer trainer(config, *backend, world);
  trainer.start();
  const nlohmann::json identity = numerics_identity(config, "synthetic");
  if (span.from.empty())
    trainer.initialize();
  else
    EXPECT_EQ(load_checkpoint(trainer, span.from, identity), span.first);
  SyntheticSource source(config.model.context, config.model.vocab);
  StepResult summary;
  for (std::int64_t step = span.first + 1; step <= span.last; ++step) {
    summary = trainer.step(step, source);
    if (each) each(summary.loss);
  }
  if (!span.to.empty()) save_checkpoint(trainer, span.to, span.last, identity);
  return {state_sha256(trainer), summary.loss, summary.grad_norm};
}

double summed_loss(Trainer& trainer, std::int64_t batch, int count, BatchSource& source) {
  double sum = 0;
  for (const double loss : trainer.evaluate(batch, count, source)) sum += loss;
  return sum;
}

void with_trainer(Communicator& world, const RunConfig& config,
                  const std::function<void(Trainer&, BatchSource&)>& body,
                  const MakeBackend& make_backend) {
  const auto backend = make_backend(config.run.threads);
  Trainer trainer(config, *backend, world);
  trainer.start();
  trainer.initialize();
  SyntheticSource source(config.model.context, config.model.vocab);
  body(trainer, source);
}

void with_rank_alone(const RunConfig& config,
                     const std::function<void(Trainer&, BatchSource&)>& body) {
  run_threads(1, [&](Communicator& world) { with_trainer(world, config, body); });
}

void save_without(const std::string& key, const RunConfig& config, const std::string& directory) {
  with_rank_alone(config, [&](Trainer& trainer, BatchSource& source) {
    for (int step = 1; step <= 2; ++step) trainer.step(step, source);
    nlohmann::json identity = numerics_identity(config, "synthetic");
    EXPECT_EQ(identity.erase(key), 1) << key;
    save_checkpoint(trainer, directory, 2, identity);
  });
}

Outcome train_threads(int ranks, const RunConfig& config, const Span& span,
                      const MakeBackend& make_backend) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(ranks));
  run_threads(ranks, [&](Communicator& world) {
    outcomes[static_cast<std::size_t>(world.rank())] =
        train_rank(world, config, span, make_backend);
  });
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome, outcomes[0]);
  return outcomes[0];
}

}  // namespace concertina
