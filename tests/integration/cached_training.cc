#include "tests/integration/cached_training.h"

#include <gtest/gtest.h>

#include "experiments/run/checkpoint_writer.h"
#include "experiments/run/run_checkpoint.h"
#include "experiments/run/run_identity.h"
#include "experiments/run/state_hash.h"
#include "tests/threads/thread_communicator.h"

namespace concertina {
namespace {

/// Returns the bytes of a budget for this many samples.
ByteSize room_for(std::uint64_t samples, const RunConfig& config) {
  const std::uint64_t entry = config.numerics.compute == "bf16" ? 13 * 16 * 2 : 13 * 16 * 4;
  return {static_cast<std::int64_t>(align_up(CacheSlots{0, samples, entry}.file_bytes(), 4096))};
}

}  // namespace

RunConfig cached_config() {
  RunConfig config = small_config();
  config.model = {.layers = 4, .width = 16, .heads = 2, .context = 13, .vocab = 256};
  config.batch = {12, 4};
  config.data.options["windows"] = "fixed";
  config.freeze.policy = "list";  // layers will freeze
  config.cache.use = "always";
  return config;
}

CachedResult train_cached(int ranks, const RunConfig& config, const CachedHost& host,
                          const Span& span, const std::vector<LayoutChange>& changes,
                          const MakeBackend& make_backend,
                          const std::function<void(int rank, std::int64_t step)>& before) {
  std::vector<CachedResult> results(static_cast<std::size_t>(ranks));
  run_threads(ranks, [&](Communicator& world) {
    CachedResult& result = results[static_cast<std::size_t>(world.rank())];
    const auto backend = make_backend(config.run.threads);
    Trainer trainer(config, *backend, world);
    trainer.start();
    const nlohmann::json identity = numerics_identity(config, "text");
    if (span.from.empty())
      trainer.initialize();
    else
      EXPECT_EQ(load_checkpoint(trainer, span.from, identity), span.first);
    TrainingSource source(host.dataset(config), data_seed(config), config.batch.global);
    std::unique_ptr<AutoCache> cache;
    if (config.cache.memory.bytes > 0 || config.cache.disk.bytes > 0)
      cache = std::make_unique<AutoCache>(
          trainer, AutoCache::Options{.dataset = host.dataset(config),
                                      .numerics = identity.dump(),
                                      .decided = [&](std::int64_t, nlohmann::ordered_json one) {
                                        result.decisions.push_back(std::move(one));
                                      }});
    StepResult step_result;
    for (std::int64_t step = span.first + 1; step <= span.last; step = trainer.done() + 1) {
      for (const LayoutChange& change : changes)
        if (change.step == step) trainer.adopt(assign(trainer.job(), change.request));
      if (cache) cache->before_step(step);
      if (before) before(world.rank(), step);
      step_result = trainer.step(step, source);
      if (step % 4 == 0) trainer.evaluate(0, 2, source);  // neither reads nor writes
    }
    if (!span.to.empty()) save_checkpoint(trainer, span.to, span.last, identity);
    result.outcome = {state_sha256(trainer), step_result.loss, step_result.grad_norm};
    if (cache) result.use = cache->use();
    for (const UnitSeconds& unit : trainer.engine().executor().unit_clock().seconds())
      result.forward.push_back(unit.forward);
  });
  for (const CachedResult& result : results) EXPECT_EQ(result.outcome, results[0].outcome);
  return results[0];
}

Request frozen_at(int units, int world, int pp, int dp, const std::string& schedule) {
  return {.world = world,
          .spare = world - pp * dp,
          .frozen_units = units,
          .pp = pp,
          .dp = dp,
          .schedule = schedule};
}

RunConfig with_room(RunConfig config, const CachedHost& host, std::uint64_t memory,
                    std::uint64_t disk) {
  if (memory > 0) config.cache.memory = room_for(memory, config);
  if (disk > 0) config.cache.disk = room_for(disk, config);
  config.cache.dir = host.directory.path();
  return config;
}

}  // namespace concertina
