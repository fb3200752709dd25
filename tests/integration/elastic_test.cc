// Changes of the assignment in the middle of a training: any layout to any layout, with spare
// ranks, and every bit stays as it would have been.
#include <gtest/gtest.h>
#include <malloc.h>

#include <atomic>
#include <filesystem>
#include <random>
#include <set>

#include "core/error.h"
#include "experiments/adopt/freezing.h"
#include "experiments/run/checkpoint_writer.h"
#include "experiments/run/planning.h"
#include "experiments/run/run_identity.h"
#include "experiments/run/state_hash.h"
#include "io/checkpoint/checkpoint_reader.h"
#include "parallel/generate/assign.h"
#include "parallel/repartition/grown_batch.h"
#include "tests/integration/training.h"
#include "tests/temporary_directory.h"

namespace concertina {
namespace {

constexpr int kWorld = 4;

Request grid(int pp, int dp, const std::string& schedule) {
  return {.world = kWorld, .spare = kWorld - pp * dp, .pp = pp, .dp = dp, .schedule = schedule};
}

/// Steps [1, last] on four threads, with changes.
Outcome train_moving(const RunConfig& config, std::int64_t last,
                     const std::vector<LayoutChange>& changes) {
  return train_threads(kWorld, config, {0, last, "", ""}, cpu_backend, {.changes = changes});
}

/// 3 = 2 + 1, on ranks of which the second is spare.
Request two_and_one_spare() {
  return {.world = kWorld,
          .spare = 1,
          .layout = {{Pipeline{{{3, 0, 4}, {0, 4, 8}}, 0, 8}, Pipeline{{{2, 0, 8}}, 8, 12}}}};
}

TEST(ElasticTraining, FreezingAtAStepGivesTheSameBitsAtEveryLayout) {
  RunConfig config = small_config();
  const auto freezing = [&](Request first, Request second, Request third) {
    first.frozen_units = 3, second.frozen_units = 5;
    return std::vector<LayoutChange>{{4, first}, {7, second}, {9, third}};
  };
  std::vector<Outcome> seen{train_moving(with_grid(config, 1, 4, "1f1b"), 10, {})};
  for (const auto& [tied, unfreeze] :
       {std::pair{"trains", "never"}, {"trains", "loss"}, {"freezes", "never"}}) {
    SCOPED_TRACE(fmt::format("{}, {}", tied, unfreeze));
    config.freeze.tied = tied;
    config.freeze.unfreeze = unfreeze;  // keeps the state of frozen units
    const Outcome one =
        train_moving(with_grid(config, 4, 1, "1f1b"), 10,
                     freezing(grid(4, 1, "1f1b"), grid(4, 1, "1f1b"), grid(4, 1, "1f1b")));
    EXPECT_EQ(train_moving(with_grid(config, 1, 4, "1f1b"), 10,
                           freezing(grid(2, 2, "zb-h1"), grid(1, 4, "1f1b"), grid(4, 1, "gpipe"))),
              one);
    EXPECT_EQ(train_moving(with_grid(config, 2, 2, "gpipe"), 10,
                           freezing(two_and_one_spare(), grid(1, 2, "gpipe"), grid(2, 2, "1f1b"))),
              one);
    for (const Outcome& other : seen) EXPECT_NE(other, one);
    seen.push_back(one);
  }
}

/// Any scheme, as if the ranks were on one or two hosts.
ExchangeChoice random_exchange(std::mt19937& random) {
  ExchangeChoice choice{std::string(exchange_schemes()[random() % exchange_schemes().size()].name)};
  for (int rank = 0; rank < kWorld; ++rank) choice.hosts.push_back(static_cast<int>(random() % 2));
  return choice;
}

/// Any schedule that fits, on any number of the ranks; now and then pipelines of unlike depth.
Request random_request(const Job& job, std::mt19937& random, int frozen_units = 0) {
  for (;;) {
    if (random() % 12 == 0 && job.units() == 8) {
      Request uneven = two_and_one_spare();
      uneven.frozen_units = frozen_units;
      return uneven;
    }
    const auto& schedule = schedules()[random() % schedules().size()];
    Request request{.world = kWorld,
                    .spare = static_cast<int>(random() % kWorld),
                    .frozen_units = frozen_units,
                    .schedule = std::string(schedule.name),
                    .exchange = random_exchange(random)};
    try {
      const LayoutLimits limits{.world = kWorld - request.spare,
                                .units = job.units(),
                                .microbatches = job.microbatches,
                                .leaves = job.leaves};
      const std::vector<Grid> grids = fitting_grids(limits, folding_of(request));
      if (grids.empty()) continue;
      const Grid grid = grids[random() % grids.size()];
      request.pp = grid.pp, request.dp = grid.dp;
      assign(job, request);
      return request;
    } catch (const Error&) {  // the schedule has no form for it
    }
  }
}

constexpr int kChainSteps = 6, kChainFreezesAt = 3, kChainFrozen = 3;

/// A change before each step; in every other chain a layer freezes on the way.
std::vector<LayoutChange> random_chain(const Job& job, int chain) {
  std::mt19937 random(static_cast<unsigned>(chain));
  std::vector<LayoutChange> changes;
  for (int step = 1; step <= kChainSteps; ++step) {
    const bool frozen = chain % 2 == 1 && step >= kChainFreezesAt;
    changes.push_back({step, random_request(job, random, frozen ? kChainFrozen : 0)});
  }
  return changes;
}

TEST(ElasticTraining, RandomChainsOfChangesLeaveEveryBit) {
  std::set<std::string> seen, wanted{"pp1xdp1", "pp1xdp2", "pp1xdp3", "pp1xdp4", "pp2xdp1",
                                     "pp2xdp2", "pp3xdp1", "pp4xdp1", "uneven"};
  for (const auto& schedule : schedules()) wanted.insert(std::string(schedule.name));
  for (const auto& [compute, chains] : {std::pair{"fp32", 200}, {"bf16", 20}}) {
    RunConfig config = small_config();
    config.model = {.layers = 3, .width = 8, .heads = 1, .context = 4, .vocab = 11};
    config.numerics.compute = compute;
    const Job job = job_of(config);
    Request freeze = grid(1, 1, "1f1b");
    freeze.frozen_units = kChainFrozen;
    const Outcome still[] = {
        train_threads(1, config, {0, kChainSteps, "", ""}),
        train_moving(config, kChainSteps, {{1, grid(1, 1, "1f1b")}, {kChainFreezesAt, freeze}})};
    ASSERT_FALSE(still[0] == still[1]);
    for (int chain = 0; chain < chains; ++chain) {
      const std::vector<LayoutChange> changes = random_chain(job, chain);
      ASSERT_EQ(train_moving(config, kChainSteps, changes), still[chain % 2])
          << compute << ", chain " << chain;
      for (const auto& [step, request] : changes) {
        seen.insert(request.schedule);
        seen.insert(request.pp == 0 ? "uneven" : fmt::format("pp{}xdp{}", request.pp, request.dp));
      }
    }
  }
  EXPECT_EQ(seen, wanted);
}

/// The same change, to steps that do the work of `batches` steps at once.
LayoutChange grown(int step, int batches, Request request) {
  request.batches = batches;
  request.layout = with_batches(std::move(request.layout), batches);
  return {step, std::move(request)};
}

TEST(ElasticTraining, StepsThatDoSeveralAtOnceHaveTheSameBitsAtEveryLayout) {
  RunConfig config = small_config();
  config.model.dropout = 0.1;
  // 1, 2, 3, 4+5, 6+7, 8+9+10, 11, 12
  const auto steps = [](Request a, Request b, Request c) {
    return std::vector<LayoutChange>{grown(4, 2, a), grown(6, 2, b), grown(8, 3, b),
                                     grown(11, 1, c)};
  };
  const Request one = grid(1, 1, "1f1b");
  const Outcome alone = train_moving(with_grid(config, 4, 1, "1f1b"), 12, steps(one, one, one));
  EXPECT_EQ(train_moving(with_grid(config, 1, 4, "1f1b"), 12,
                         steps(grid(1, 4, "1f1b"), grid(2, 2, "zb-h1"), grid(4, 1, "gpipe"))),
            alone);
  EXPECT_EQ(train_moving(with_grid(config, 2, 2, "gpipe"), 12,
                         steps(two_and_one_spare(), grid(2, 1, "zb-v"), grid(2, 1, "dualpipe"))),
            alone);
  EXPECT_NE(train_moving(with_grid(config, 4, 1, "1f1b"), 12, {}), alone);
}

/// Batches of `batches` batches of `samples` samples of another source.
class JoinedSource final : public BatchSource {
 public:
  JoinedSource(BatchSource& source, std::int64_t samples, std::int64_t batches)
      : source_(source), samples_(samples), batches_(batches) {}
  std::span<const Field> fields() const override { return source_.fields(); }
  void load(std::int64_t step, std::int64_t first, std::int64_t count,
            std::span<const View> views) override {
    for (std::int64_t i = 0; i < count; ++i) {
      std::vector<View> one(views.begin(), views.end());
      for (View& view : one)
        if (!view.empty())
          view =
              view.slice(view.count / static_cast<std::size_t>(count) * static_cast<std::size_t>(i),
                         view.count / static_cast<std::size_t>(count));
      const std::int64_t sample = first + i;
      source_.load(step * batches_ + sample / samples_, sample % samples_, 1, one);
    }
  }
  std::int64_t valid_targets(std::int64_t step, std::int64_t samples) const override {
    return source_.valid_targets(step, samples);
  }

 private:
  BatchSource& source_;
  const std::int64_t samples_, batches_;
};

TEST(ElasticTraining, AStepThatDoesTwoIsAStepWithABatchTwiceAsLarge) {
  RunConfig config = small_config();
  config.lr = {.schedule = "constant", .warmup = 0};
  const Outcome grew = train_moving(config, 8, {grown(1, 2, grid(2, 2, "1f1b"))});
  RunConfig large = config;
  large.batch = {48, 24};
  large.numerics.leaves = 24;  // as many per microbatch: the same order of sums
  Outcome wanted;
  with_rank_alone(large, [&](Trainer& trainer, BatchSource& source) {
    JoinedSource joined(source, 24, 2);
    StepResult result;
    for (int step = 1; step <= 4; ++step) result = trainer.step(step, joined);
    wanted = {state_sha256(trainer), result.loss, result.grad_norm};
  });
  EXPECT_EQ(grew, wanted);
}

TEST(ElasticTraining, ACheckpointBetweenStepsThatDoSeveralGoesOnAtAnyLayout) {
  const RunConfig config = small_config();
  const TemporaryDirectory directory;
  const auto twos = [](int step, const Request& request) {
    return TrainingHooks{.changes = {grown(step, 2, request)}};
  };
  const auto train = [&](int pp, int dp, const Span& span, const TrainingHooks& hooks) {
    return train_threads(pp * dp, with_grid(config, pp, dp, "1f1b"), span, cpu_backend, hooks);
  };
  const Outcome whole = train(2, 2, {0, 12, "", ""}, twos(3, grid(1, 4, "1f1b")));
  train(4, 1, {0, 6, "", directory.path()}, twos(3, grid(2, 2, "zb-h1")));
  TrainingHooks alone = twos(7, {});
  alone.before = [&](Trainer& trainer, std::int64_t step) {
    if (step != 7) return;
    EXPECT_EQ(trainer.ahead(), 2);
    std::uint64_t bytes = 0;
    for (const auto& file :
         std::filesystem::directory_iterator(directory.path() + "/step-00000006"))
      bytes += file.file_size();
    EXPECT_GT(checkpoint_bytes(trainer), bytes);
    EXPECT_LT(checkpoint_bytes(trainer), 4 * bytes);  // small tensors, in pages of their own
  };
  EXPECT_EQ(train(1, 1, {6, 12, directory.path(), ""}, alone), whole);
}

TEST(ElasticTraining, ACheckpointBesideStepsIsOfItsStepWhateverFollows) {
  const RunConfig config = small_config();
  const nlohmann::json identity = numerics_identity(config, "synthetic");
  const Outcome whole = train_threads(1, config, {0, 6, "", ""});
  // Before step 1, and while the checkpoint of step 2 is written: the ranks that work are the same.
  const std::pair<Request, Request> cases[] = {
      {grid(2, 2, "1f1b"), grid(4, 1, "1f1b")},
      {grid(1, 4, "1f1b"), grid(2, 2, "zb-h1")},
      {grid(2, 1, "1f1b"), grid(1, 2, "1f1b")},  // with spare ranks
  };
  for (const auto& [first, second] : cases) {
    const TemporaryDirectory directory;
    const int working = kWorld - first.spare;
    with_threads(kWorld, config, [&](Trainer& trainer, BatchSource& source) {
      std::atomic<int> told = 0;
      CheckpointWriter writer(trainer, directory.path());
      trainer.adopt(assign(trainer.job(), first));
      std::optional<SavedCheckpoint> saved;
      for (int step = 1; step <= 6; ++step) {
        trainer.step(step, source);
        const double news = writer.news();
        const std::vector<double> all = trainer.gather_working(std::span(&news, 1));
        if (writer.busy())
          if (const auto now = writer.hear(all, true)) saved = now;
        if (step == 2) writer.start(2, identity, {}, /*concurrent=*/true, [&](bool) { ++told; });
        if (step == 3) trainer.adopt(assign(trainer.job(), second));
      }
      if (writer.busy()) saved = writer.finish();
      ASSERT_TRUE(saved);
      EXPECT_EQ(saved->step, 2);
      EXPECT_GT(saved->seconds, 0);
      EXPECT_EQ(told, trainer.world().rank() == 0 ? 1 : 0);
      EXPECT_EQ(writer.copy_bytes() > 0, trainer.assignment().works(trainer.world().rank()));
    });
    const auto shards = open_manifest(directory.path() + "/step-00000002").shards.size();
    EXPECT_EQ(shards, static_cast<std::size_t>(working));
    EXPECT_EQ(train_threads(2, config, {2, 6, directory.path(), ""}), whole);
  }
}

/// The drift of each layer from step 3 to step 6, where the layout changes before step 5.
std::vector<double> drift_over(const RunConfig& config, const Request& next) {
  std::vector<std::vector<double>> drifts(kWorld);
  with_threads(kWorld, config, [&](Trainer& trainer, BatchSource& source) {
    const std::vector<int> layers{0, 0, 0, 0, 1, 1, 2, 2, -1};  // two buckets of the embedding
    for (int step = 1; step <= 6; ++step) {
      if (step == 4) take_reference(trainer);
      if (step == 5) trainer.adopt(assign(trainer.job(), next));
      trainer.step(step, source);
    }
    drifts[static_cast<std::size_t>(trainer.world().rank())] = weight_drift(trainer, layers, 3);
  });
  for (const std::vector<double>& drift : drifts) EXPECT_EQ(drift, drifts[0]);
  return drifts[0];
}

TEST(ElasticTraining, DriftFromASnapshotIsTheSameAtEveryLayout) {
  RunConfig config = small_config();
  config.freeze.policy = "plasticity";
  const std::vector<double> one = drift_over(with_grid(config, 4, 1, "1f1b"), grid(4, 1, "1f1b"));
  for (const double drift : one) {
    EXPECT_GT(drift, 1e-3);
    EXPECT_LT(drift, 1);
  }
  EXPECT_EQ(drift_over(with_grid(config, 1, 4, "1f1b"), grid(2, 1, "zb-h1")), one);
  EXPECT_EQ(drift_over(with_grid(config, 2, 2, "gpipe"), two_and_one_spare()), one);
}

/// Bytes that the process has allocated and not given back.
std::size_t heap_bytes() {
  const struct mallinfo2 info = mallinfo2();
  return info.uordblks + info.hblkhd;
}

TEST(ElasticTraining, AThousandChangesLeaveNothingBehind) {
  constexpr int kChanges = 1000, kRound = 8;
  RunConfig config = small_config();
  config.model = {.layers = 3, .width = 8, .heads = 1, .context = 4, .vocab = 11};
  const Job job = job_of(config);
  std::mt19937 random(1);
  std::vector<Request> requests;
  for (int i = 0; i < kRound; ++i) requests.push_back(random_request(job, random));
  with_threads(kWorld, config, [&](Trainer& trainer, BatchSource& source) {
    Communicator& world = trainer.world();
    const auto change = [&](int number) {
      trainer.adopt(assign(job, requests[static_cast<std::size_t>(number % kRound)]));
      if (number % kRound == 0) trainer.step(1 + number / kRound, source);
    };
    std::size_t early = 0;
    for (int i = 0; i < kChanges; ++i) {
      change(i);
      if (i + 1 != kChanges / 10 / kRound * kRound) continue;
      world.barrier();
      early = heap_bytes();
      world.barrier();
    }
    world.barrier();
    EXPECT_LT(static_cast<double>(heap_bytes()), static_cast<double>(early) + 64e3);
    world.barrier();
  });
}

}  // namespace
}  // namespace concertina
