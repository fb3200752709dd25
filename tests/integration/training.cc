#include "tests/integration/training.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/rng.h"
#include "experiments/run/run_checkpoint.h"
#include "experiments/run/state_hash.h"
#include "parallel/comm/thread_communicator.h"

namespace concertina {

void SyntheticSource::load(std::int64_t step, std::int64_t first, std::int64_t count, View tokens,
                           View targets) {
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
  config.model = {"gpt", 3, 48, 4, 20, 61};
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
  const RunPlan run = make_run_plan(config, world.size());
  const auto backend = make_backend(config.run.threads);
  RankEngine engine(run, config, world.rank(), *backend);
  engine.start(world);
  const nlohmann::json identity = numerics_identity(config, run, "synthetic");
  if (span.from.empty())
    engine.initialize();
  else
    EXPECT_EQ(load_checkpoint(engine, span.from, identity), span.first);
  SyntheticSource source(config.model.context, config.model.vocab);
  StepSummary summary;
  for (std::int64_t step = span.first + 1; step <= span.last; ++step) {
    summary = engine.train(step, source);
    if (each) each(summary.loss);
  }
  if (!span.to.empty()) save_checkpoint(engine, span.to, span.last, identity);
  return {state_sha256(engine), summary.loss, summary.grad_norm};
}

void with_rank_alone(const RunConfig& config,
                     const std::function<void(const RunPlan&, RankEngine&, BatchSource&)>& body) {
  run_threads(1, [&](Communicator& world) {
    const RunPlan run = make_run_plan(config, 1);
    const auto backend = make_cpu_backend(1);
    RankEngine engine(run, config, 0, *backend);
    engine.start(world);
    engine.initialize();
    SyntheticSource source(config.model.context, config.model.vocab);
    body(run, engine, source);
  });
}

void save_without(const std::string& key, const RunConfig& config, const std::string& directory) {
  with_rank_alone(config, [&](const RunPlan& run, RankEngine& engine, BatchSource& source) {
    for (int step = 1; step <= 2; ++step) engine.train(step, source);
    nlohmann::json identity = numerics_identity(config, run, "synthetic");
    EXPECT_EQ(identity.erase(key), 1) << key;
    save_checkpoint(engine, directory, 2, identity);
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
