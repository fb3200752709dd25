#include "tests/integration/training.h"

#include <gtest/gtest.h>

#include <vector>

#include "core/rng.h"
#include "experiments/run/checkpoint_writer.h"
#include "experiments/run/run_checkpoint.h"
#include "experiments/run/run_identity.h"
#include "experiments/run/state_hash.h"
#include "parallel/generate/schedule_registry.h"
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

namespace {

/// The state does not change unless other units are frozen, and memory is as predicted.
void adopt(Trainer& trainer, const LayoutChange& change) {
  const std::string before = state_sha256(trainer);
  const int frozen = trainer.layout().frozen_units;
  EXPECT_GT(trainer.adopt(assign(trainer.job(), change.request)).seconds, 0);
  if (change.request.frozen_units == frozen) {
    EXPECT_EQ(state_sha256(trainer), before) << "before step " << change.step;
  }
  EXPECT_EQ(trainer.state().bytes() + trainer.engine().arena().used(), trainer.memory().total());
}

}  // namespace

Outcome train_rank(Communicator& world, const RunConfig& config, const Span& span,
                   const MakeBackend& make_backend, const TrainingHooks& hooks) {
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
  for (std::int64_t step = span.first + 1; step <= span.last; step = trainer.done() + 1) {
    for (const LayoutChange& change : hooks.changes)
      if (change.step == step) adopt(trainer, change);
    if (hooks.before) hooks.before(trainer, step);
    summary = trainer.step(step, source);
    if (hooks.after) hooks.after(summary.loss);
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

void with_threads(int ranks, const RunConfig& config,
                  const std::function<void(Trainer&, BatchSource&)>& body) {
  run_threads(ranks, [&](Communicator& world) { with_trainer(world, config, body); });
}

void with_rank_alone(const RunConfig& config,
                     const std::function<void(Trainer&, BatchSource&)>& body) {
  with_threads(1, config, body);
}

Outcome train_threads(int ranks, const RunConfig& config, const Span& span,
                      const MakeBackend& make_backend, const TrainingHooks& hooks) {
  std::vector<Outcome> outcomes(static_cast<std::size_t>(ranks));
  run_threads(ranks, [&](Communicator& world) {
    outcomes[static_cast<std::size_t>(world.rank())] =
        train_rank(world, config, span, make_backend, hooks);
  });
  for (const Outcome& outcome : outcomes) EXPECT_EQ(outcome, outcomes[0]);
  return outcomes[0];
}

std::vector<RunPlace> grid_places(const RunConfig& config, const std::vector<GridSchedule>& grids) {
  std::vector<RunPlace> places;
  for (const auto& [pp, dp, schedule] : grids)
    places.push_back({fmt::format("pp={} dp={} {}", pp, dp, schedule), pp * dp,
                      with_grid(config, pp, dp, schedule)});
  return places;
}

std::vector<RunPlace> schedule_places(const RunConfig& config) {
  std::vector<GridSchedule> grids;
  for (const Entry<Schedule>& schedule : schedules())
    for (const auto& [pp, dp] : {std::pair{1, 1}, {2, 1}, {4, 1}, {2, 2}})
      if (pp % schedule.value.rank_step == 0 && (!schedule.value.searched || pp * dp <= 2))
        grids.emplace_back(pp, dp, schedule.name);
  return grid_places(config, grids);
}

std::vector<RunPlace> uneven_places(const RunConfig& config, const std::string& schedule) {
  const Layout two_and_one{{Pipeline{{{0, 0, 4}, {1, 4, 8}}, 0, 8}, Pipeline{{{2, 0, 8}}, 8, 12}}},
      opposite{{Pipeline{{{0, 0, 3}, {1, 3, 8}}, 0, 5}, Pipeline{{{1, 0, 4}, {0, 4, 8}}, 5, 12}}},
      v_shape{{Pipeline{{{0, 0, 2}, {1, 2, 5}, {0, 5, 8}}, 0, 12}}},
      four{{Pipeline{{{0, 0, 1}, {1, 1, 4}, {2, 4, 6}, {3, 6, 8}}, 0, 12}}};
  return {{"3=2+1 " + schedule, 3, with_layout(config, two_and_one, schedule)},
          {"opposite " + schedule, 2, with_layout(config, opposite, schedule)},
          {"V " + schedule, 2, with_layout(config, v_shape, schedule)},
          {"four " + schedule, 4, with_layout(config, four, schedule)}};
}

void expect_same_bits(const std::vector<RunPlace>& places, const Outcome& expected,
                      const Span& span, const MakeBackend& make_backend) {
  for (const RunPlace& place : places)
    EXPECT_EQ(train_threads(place.ranks, place.config, span, make_backend), expected)
        << place.name << (place.config.parallel.overlap ? ", overlapped" : "") << ", "
        << place.config.numerics.compute << ", " << place.config.freeze.units << " frozen, "
        << place.config.run.threads << " threads";
}

}  // namespace concertina
