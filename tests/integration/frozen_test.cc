// Training with a frozen prefix of units: the same bits with every schedule and layout, above the
// frontier the gradients of an unfrozen model, and nothing stored below it.
#include <gtest/gtest.h>

#include <array>
#include <cmath>
#include <cstring>
#include <map>

#include "core/profile_backend.h"
#include "experiments/predict/predict_memory.h"
#include "experiments/run/checkpoint_writer.h"
#include "experiments/run/run_checkpoint.h"
#include "models/model.h"
#include "tests/integration/training.h"
#include "tests/io/io_test.h"
#include "tests/planned.h"
#include "tests/temporary_directory.h"
#include "tests/threads/thread_communicator.h"

namespace concertina {
namespace {

constexpr int kUnits = 8;
const Span kShort{0, 4, "", ""};

RunConfig frozen(RunConfig config, int units) {
  config.freeze.units = units;
  return config;
}

const Outcome& reference(int units) {
  static std::map<int, Outcome> outcomes;
  const auto [at, fresh] = outcomes.try_emplace(units);
  if (fresh)
    at->second = train_threads(1, frozen(with_grid(small_config(), 1, 1, "1f1b"), units), kShort);
  return at->second;
}

TEST(FrozenTraining, HasTheSameBitsAtEveryScheduleAndLayout) {
  std::size_t number = 0;
  for (RunPlace place : schedule_places(small_config())) {
    const int units = std::array{1, 3, 4, 7}[(number + number / 4) % 4];
    place.config.freeze.units = units;
    place.config.parallel.overlap = units == 3;
    expect_same_bits({place}, reference(units), kShort);
    ++number;
  }
  for (int units = 1; units < kUnits; ++units)
    for (const std::string schedule : {"1f1b", "gpipe"})
      expect_same_bits(uneven_places(frozen(small_config(), units), schedule), reference(units),
                       kShort);
}

RunConfig with_untrained(RunConfig config, std::vector<std::string> patterns) {
  config.freeze.tensors = std::move(patterns);
  return config;
}

const std::vector<std::vector<std::string>> kTensorSets{
    {"*", "!*.bias", "!*/ln.*"}, {"*", "!*.head/*"}, {"wte", "*.mlp/*"}};

TEST(FrozenTensors, HaveTheSameBitsAtEveryLayout) {
  for (const std::vector<std::string>& patterns : kTensorSets)
    for (const int units : {0, 3}) {
      SCOPED_TRACE(fmt::format("{}", fmt::join(patterns, " ")));
      const RunConfig config = frozen(with_untrained(small_config(), patterns), units);
      expect_same_bits(
          grid_places(
              config,
              {{2, 1, "gpipe"}, {1, 3, "1f1b"}, {2, 1, "interleaved-1f1b"}, {2, 2, "zb-h1"}}),
          train_threads(1, with_grid(config, 1, 1, "1f1b"), kShort), kShort);
    }
}

TEST(FrozenTraining, LearnsAndDependsOnTheFrontier) {
  const RunConfig config = with_grid(small_config(), 1, 1, "1f1b");
  EXPECT_LT(train_threads(1, frozen(config, 4)).loss, 0.99 * std::log(61.0));
  for (int units = 1; units < kUnits; ++units)
    EXPECT_NE(reference(units), reference(units - 1)) << units;
}

using Bits = std::vector<std::vector<float>>;

/// Weights and first optimizer state of each bucket, and the norm, after several steps on one rank.
struct State {
  Bits weights, moments;
  double grad_norm = 0, loss = 0;
};

State train_alone(const RunConfig& config, int steps) {
  State state;
  with_rank_alone(config, [&](Trainer& trainer, BatchSource& source) {
    for (int step = 1; step <= steps; ++step) {
      const StepResult summary = trainer.step(step, source);
      state.grad_norm = summary.grad_norm;
      state.loss = summary.loss;
    }
    const auto values = [](View view) {
      return std::vector<float>(view.f32(), view.f32() + view.count);
    };
    for (std::size_t b = 0; b < trainer.assignment().buckets.size(); ++b) {
      state.weights.push_back(values(trainer.state().weights()[b]));
      const View moment = trainer.state().part(b, 0);
      EXPECT_EQ(moment.empty(), trainer.assignment().buckets[b].frozen);
      state.moments.push_back(moment.empty() ? std::vector<float>() : values(moment));
    }
  });
  return state;
}

bool same_bits(const std::vector<float>& a, const std::vector<float>& b) {
  return a.size() == b.size() && std::memcmp(a.data(), b.data(), a.size() * sizeof(float)) == 0;
}

/// Without clipping, the first step of a trained tensor is that of the whole model, and the norm is
/// that of the remaining gradients: AdamW's first moment is (1 - beta) times the gradient.
TEST(FrozenTensors, StayAsTheyAreAndTheOthersTrainAsEver) {
  RunConfig config = with_grid(small_config(), 1, 1, "1f1b");
  config.optimizer.clip = 0;
  const State first = train_alone(config, 0), whole = train_alone(config, 1);
  for (const std::vector<std::string>& patterns : kTensorSets) {
    const RunConfig some = with_untrained(config, patterns);
    const State now = train_alone(some, 1);
    double squares = 0;
    int trained = 0, kept = 0;
    const std::vector<Bucket> buckets = make_buckets(model_of(some)->spec());
    for (std::size_t b = 0; b < buckets.size(); ++b)
      for (const BucketTensor& tensor : buckets[b].tensors) {
        const auto part = [&](const Bits& bits) {
          const auto begin = bits[b].begin() + static_cast<std::ptrdiff_t>(tensor.offset);
          return std::vector<float>(begin, begin + static_cast<std::ptrdiff_t>(tensor.count));
        };
        const State& like = tensor.trains ? whole : first;
        EXPECT_TRUE(same_bits(part(now.weights), part(like.weights))) << tensor.name;
        ++(tensor.trains ? trained : kept);
        if (!tensor.trains) continue;
        for (const float moment : part(whole.moments)) squares += double{moment} * double{moment};
      }
    EXPECT_GT(trained, 0);
    EXPECT_GT(kept, 0);
    const double share = 1 - config.optimizer.betas[0];
    EXPECT_NEAR(now.grad_norm, std::sqrt(squares) / share, 1e-4 * now.grad_norm);
  }
}

TEST(FrozenTensors, NeedNamesThatThereAre) {
  const auto make = [](const char* pattern) {
    return model_of(with_untrained(small_config(), {pattern}));
  };
  EXPECT_NO_THROW(make("*.bias"));
  EXPECT_ERROR(make("*.biases"), "no tensor of this model matches *.biases");
  EXPECT_ERROR(make("*"), "no tensors left to train");
}

/// In step 1, a frozen model is the whole one without some of its gradients; the table shared by
/// embedding and head may keep the head's part. Only these are missing from the update and, without
/// clipping, from the norm. AdamW's moment is then (1 - beta) times the gradient.
TEST(FrozenTraining, FirstStepIsThatOfTheWholeModelWithoutTheFrozenGradients) {
  RunConfig config = with_grid(small_config(), 1, 1, "1f1b");
  config.optimizer.clip = 0;
  const State start = train_alone(config, 0), whole = train_alone(config, 1);
  const auto all = planned(config, 1).buckets;
  std::vector<float> of_head;  // the moment of a table trained only in the head
  for (int one = 2; one < 2 * kUnits; ++one) {
    const int units = one / 2;
    const std::string tied = one % 2 == 0 ? "freezes" : "trains";
    config.freeze.tied = tied;
    const State some = train_alone(frozen(config, units), 1);
    const auto buckets = planned(frozen(config, units), 1).buckets;
    EXPECT_EQ(buckets.size(), all.size() + (tied == "trains" ? 1 : 0));
    double squares = 0;
    for (std::size_t b = 0; b < buckets.size(); ++b) {
      SCOPED_TRACE(fmt::format("{} frozen, {}, bucket {}", units, tied, buckets[b].name));
      if (b == all.size()) {
        const auto table = static_cast<std::size_t>(buckets[b].copy_of);
        EXPECT_TRUE(same_bits(some.weights[b], start.weights[table]));
        continue;
      }
      const bool parted = buckets[b].uses != all[b].uses;
      EXPECT_EQ(same_bits(some.weights[b], (buckets[b].frozen ? start : whole).weights[b]),
                !parted);
      if (buckets[b].frozen) continue;
      EXPECT_FALSE(same_bits(some.weights[b], start.weights[b]));
      EXPECT_EQ(same_bits(some.moments[b], whole.moments[b]), !parted);
      if (parted && of_head.empty()) of_head = some.moments[b];
      EXPECT_TRUE(!parted || same_bits(some.moments[b], of_head));
      for (const float moment : some.moments[b])
        squares += std::pow(static_cast<double>(moment) / (1 - config.optimizer.betas[0]), 2);
    }
    EXPECT_EQ(some.loss, whole.loss);
    EXPECT_LT(some.grad_norm, whole.grad_norm);
    EXPECT_NEAR(some.grad_norm, std::sqrt(squares), 1e-5 * some.grad_norm);
  }
}

TEST(FrozenTraining, NeverChangesAFrozenWeightOnAnyRank) {
  for (const std::string schedule : {"1f1b", "zb-v", "dualpipe"}) {
    const RunConfig config = frozen(with_grid(small_config(), 2, 1, schedule), 5);
    with_threads(2, config, [&](Trainer& trainer, BatchSource& source) {
      for (int step = 1; step <= 5; ++step) trainer.step(step, source);
      const std::vector<Bucket>& buckets = trainer.assignment().buckets;
      for (std::size_t b = 0; b < buckets.size(); ++b) {
        const View now = trainer.state().weights()[b];
        if (now.empty()) continue;
        std::vector<float> first(now.count, 0.0F);
        initialize(buckets[b], static_cast<std::uint64_t>(config.run.seed), 0, first);
        SCOPED_TRACE(buckets[b].name);
        EXPECT_EQ(same_bits({now.f32(), now.f32() + now.count}, first), buckets[b].frozen);
      }
      trainer.world().barrier();
    });
  }
}

std::size_t sum_of(const std::vector<RankMemory>& ranks) {
  std::size_t sum = 0;
  for (const RankMemory& rank : ranks) sum += rank.total();
  return sum;
}

TEST(FrozenTraining, TakesExactlyThePredictedMemoryAndLess) {
  for (const auto& [pp, dp] : {std::pair{1, 1}, {2, 1}, {4, 1}, {2, 2}})
    for (const int units : {0, 1, 4, 6}) {
      SCOPED_TRACE(fmt::format("pp={} dp={}, {} frozen", pp, dp, units));
      const int ranks = pp * dp;
      const RunConfig config = frozen(with_grid(small_config(), pp, dp, "1f1b"), units);
      const PlannedJob run = planned(config, ranks);
      const std::vector<RankMemory> predicted = predict_memory(config, run.job, run, 1);
      const std::vector<RowMemory> rows = plan_memory(run.plan, run.layout);
      with_threads(ranks, config, [&](Trainer& trainer, BatchSource& source) {
        const auto rank = static_cast<std::size_t>(trainer.world().rank());
        trainer.step(1, source);
        EXPECT_EQ(trainer.engine().executor().measured(), rows[rank]);
        EXPECT_EQ(trainer.peak_bytes(), predicted[rank].total());
        trainer.world().barrier();
      });
      const RunConfig all = frozen(config, 0);
      const std::vector<RankMemory> whole =
          predict_memory(all, job_of(all), planned(all, ranks), 1);
      EXPECT_EQ(sum_of(predicted) < sum_of(whole), units > 0);
    }
}

TEST(FrozenTraining, ResumesAtAnotherLayoutButNotAtAnotherFrontier) {
  const TemporaryDirectory directory;
  const RunConfig grid = frozen(with_grid(small_config(), 2, 2, "1f1b"), 3);
  const RunConfig one = frozen(with_grid(small_config(), 1, 1, "gpipe"), 3);
  train_threads(4, grid, {0, 2, "", directory.path()});
  EXPECT_EQ(train_threads(1, one, {2, 4, directory.path(), ""}), reference(3));
  EXPECT_ERROR(train_threads(1, frozen(one, 2), {2, 4, directory.path(), ""}),
               "freeze.units was 3, now it is 2");
}

TEST(FrozenTraining, PacksAFrozenWeightOnceForARun) {
  const TemporaryDirectory directory;
  // Attention and MLP have two to pack, the head has the token table, shared with the embedding.
  for (const auto& [units, each_step] : {std::pair{0, 13}, {1, 13}, {2, 11}, {5, 5}, {7, 1}}) {
    SCOPED_TRACE(fmt::format("{} frozen", units));
    const RunConfig config = frozen(with_grid(small_config(), 1, 1, "1f1b"), units);
    const PlannedJob run = planned(config, 1);
    const auto inner = make_cpu_backend(1);
    Profile profile;
    const auto backend = make_profile_backend(*inner, profile);
    const auto take_packs = [&] { return std::exchange(profile.kernels["pack weights"].calls, 0); };
    SyntheticSource source(config.model.context, config.model.vocab);
    const std::string checkpoints = fmt::format("{}/{}", directory.path(), units);
    const auto train = [&](const std::function<void(Trainer&)>& write_weights) {
      run_threads(1, [&](Communicator& world) {
        Trainer trainer(config, *backend, world);
        trainer.start();
        write_weights(trainer);
        EXPECT_EQ(take_packs(), 13);
        trainer.step(1, source);
        trainer.step(2, source);
        EXPECT_EQ(take_packs(), 2 * each_step);
        summed_loss(trainer, 0, run.job.microbatches, source);
        EXPECT_EQ(take_packs(), 0);
        save_checkpoint(trainer, checkpoints, 2, {});
      });
    };
    train([](Trainer& trainer) { trainer.initialize(); });
    train([&](Trainer& trainer) { load_checkpoint(trainer, checkpoints, {}); });
  }
}

/// Returns the weight and Adam's moments of element 0 of the first matrix of unit 1.
std::array<double, 3> values_of(const Trainer& trainer) {
  const std::size_t b = 2;
  const Bucket& bucket = trainer.assignment().buckets[b];
  EXPECT_EQ(bucket.name, "001.attention");
  EXPECT_TRUE(bucket.tensors[2].decay);
  const auto at = bucket.tensors[2].offset;
  return {trainer.state().weights()[b].f32()[at], trainer.state().part(b, 0).f32()[at],
          trainer.state().part(b, 1).f32()[at]};
}

/// As in torch.optim.AdamW, whose tensors count their own steps: checks step 7 of a run in which
/// the unit is frozen during steps 4 to 6, with or without a resume before it.
TEST(FrozenTraining, AThawedTensorCountsItsOwnSteps) {
  RunConfig config = with_grid(small_config(), 1, 1, "1f1b");
  config.freeze.unfreeze = "loss";  // keeps the optimizer's state
  config.lr.warmup = 0, config.lr.schedule = "constant";
  const TemporaryDirectory directory;
  const auto freeze = [](Trainer& trainer, int units) {
    const Request request = trainer.asked_with_frozen(units);
    trainer.adopt(request, assign(trainer.job(), request));
  };
  const auto expect_fourth_step = [&](Trainer& trainer, BatchSource& source) {
    freeze(trainer, 0);
    const double before = values_of(trainer)[0];
    trainer.step(7, source);
    const auto [after, m, v] = values_of(trainer);
    const OptimizerSection& adam = config.optimizer;
    const auto moved_at = [&, m = m, v = v](int step) {
      const double mean = m / (1 - std::pow(adam.betas[0], step)),
                   square = v / (1 - std::pow(adam.betas[1], step));
      return before * (1 - adam.lr * adam.weight_decay) -
             adam.lr * mean / (std::sqrt(square) + adam.eps);
    };
    const double step_size = std::abs(after - before);
    EXPECT_NEAR(after, moved_at(4), 1e-3 * step_size);
    EXPECT_GT(std::abs(after - moved_at(7)), 1e-2 * step_size);
  };
  with_rank_alone(config, [&](Trainer& trainer, BatchSource& source) {
    for (int step = 1; step <= 6; ++step) {
      if (step == 4) freeze(trainer, 3);
      trainer.step(step, source);
    }
    save_checkpoint(trainer, directory.path(), 6, {});
    expect_fourth_step(trainer, source);
  });
  with_rank_alone(config, [&](Trainer& trainer, BatchSource& source) {
    EXPECT_EQ(load_checkpoint(trainer, directory.path(), {}), 6);
    expect_fourth_step(trainer, source);
  });
}

TEST(FrozenTraining, LeavesAUnitToTrain) {
  const RunConfig config = with_grid(small_config(), 1, 1, "1f1b");
  EXPECT_NO_THROW(planned(frozen(config, kUnits - 1), 1));
  EXPECT_ERROR(planned(frozen(config, kUnits), 1), "freeze.units");
  EXPECT_ERROR(planned(frozen(config, kUnits), 1), "0 to 7");
}

}  // namespace
}  // namespace concertina
