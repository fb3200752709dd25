// A layout never changes the result: SHA-256 of weights and optimizer state, loss and gradient norm
// after several steps are bit-identical at every layout, number of threads and resume.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "experiments/config/schedule_file.h"
#include "experiments/run/checkpoint_writer.h"
#include "experiments/run/run_identity.h"
#include "models/lr_schedule.h"
#include "models/optimizer.h"
#include "tests/integration/training.h"
#include "tests/io/io_test.h"
#include "tests/planned.h"
#include "tests/temporary_directory.h"

namespace concertina {
namespace {

RunConfig threads(RunConfig config, int count) {
  config.run.threads = count;
  return config;
}

std::vector<RunPlace> places() {
  RunConfig config = small_config();
  std::vector<RunPlace> all;
  for (const bool overlap : {false, true})
    for (const std::string schedule : {"gpipe", "1f1b"}) {
      config.parallel.overlap = overlap;
      const auto grids = grid_places(config, {{1, 1, schedule},
                                              {2, 1, schedule},
                                              {4, 1, schedule},
                                              {1, 2, schedule},
                                              {1, 3, schedule},
                                              {1, 4, schedule},
                                              {2, 2, schedule}});
      const auto uneven = uneven_places(config, schedule);
      all.insert(all.end(), grids.begin(), grids.end());
      all.insert(all.end(), uneven.begin(), uneven.end());
      RunPlace interleaved{"interleaved " + schedule, 2, with_grid(config, 2, 1, schedule)};
      interleaved.config.parallel.chunks = 2;
      all.push_back(interleaved);
    }
  const auto scheduled = schedule_places(small_config());
  all.insert(all.end(), scheduled.begin(), scheduled.end());
  for (const auto& [pp, dp] : {std::pair{1, 1}, {2, 2}})
    all.push_back({fmt::format("pp={} dp={}", pp, dp), pp * dp,
                   threads(with_grid(small_config(), pp, dp, "1f1b"), 2)});
  return all;
}

const Outcome& reference() {
  static const Outcome outcome = train_threads(1, with_grid(small_config(), 1, 1, "1f1b"));
  return outcome;
}

TEST(LayoutBits, AreThoseOfOneRank) {
  const Span span{0, 6, "", ""};
  expect_same_bits(places(), train_threads(1, with_grid(small_config(), 1, 1, "1f1b"), span), span);
}

TEST(LayoutBitsReference, TheModelLearnsAndTheSeedMatters) {
  EXPECT_LT(reference().loss, 0.99 * std::log(61.0));
  EXPECT_GT(reference().grad_norm, 0);
  RunConfig other = small_config();
  other.run.seed = 2;
  EXPECT_NE(train_threads(1, other).state_sha256, reference().state_sha256);
}

TEST(LayoutBitsReference, OverlapsAreThereToBeTested) {
  int count = 0;
  for (const RunPlace& one : places()) {
    const std::string plan = to_text(planned(one.config, one.ranks).plan);
    const bool overlaps = plan.find("OVERLAP_F_B") != std::string::npos;
    EXPECT_TRUE(one.config.parallel.overlap || !overlaps) << one.name;
    count += overlaps ? 1 : 0;
  }
  EXPECT_GE(count, 12);
}

TEST(LayoutBitsFiles, OfPyTorchTrainToTheSameBits) {
  const Span span{0, 3, "", ""};
  std::map<int, Outcome> references;  // by microbatches
  int trained = 0;
  for (const auto& entry : std::filesystem::directory_iterator(CONCERTINA_PYTORCH)) {
    const std::string name = entry.path().filename();
    // PyTorch's order of the last rank is wrong here (tests/parallel_plan/pytorch_test.cc).
    if (entry.path().extension() != ".csv" || name == "1f1b-p3-m5.compute.csv") continue;
    SCOPED_TRACE(name);
    const ScheduleFile file = read_schedule_file(entry.path());
    const int ranks = static_cast<int>(file.plan.rows.size());
    const int microbatches = file.layout.pipelines[0].microbatches();
    RunConfig config = small_config();
    config.batch = {2 * microbatches, microbatches};
    if (!references.contains(microbatches))
      references[microbatches] = train_threads(1, with_grid(config, 1, 1, "1f1b"), span);
    config.parallel.schedule = entry.path();
    EXPECT_EQ(train_threads(ranks, config, span), references[microbatches]);
    ++trained;
  }
  EXPECT_GE(trained, 20);
}

TEST(LayoutBitsReference, FewerLeavesAreAnotherSumButTheSameAtAnyLayout) {
  RunConfig config = small_config();
  config.numerics.leaves = 4;
  const Outcome one = train_threads(1, with_grid(config, 1, 1, "1f1b"));
  EXPECT_NE(one.state_sha256, reference().state_sha256);
  EXPECT_EQ(train_threads(4, with_grid(config, 2, 2, "1f1b")), one);
}

/// Each optimizer with one of its options and each lr schedule, at layouts that cut tensors
/// differently, and over a resume at another layout.
TEST(LayoutBitsRules, AreThoseOfOneRankWithEveryOptimizer) {
  for (const std::string_view name : names_of(optimizers())) {
    SCOPED_TRACE(name);
    RunConfig config = small_config();
    config.optimizer.name = name;
    if (name == "sgd") config.optimizer.options.at("sgd").at("nesterov") = true;
    const Outcome one = train_threads(1, with_grid(config, 1, 1, "1f1b"));
    EXPECT_EQ(one.state_sha256 == reference().state_sha256, name == "adamw");
    EXPECT_EQ(train_threads(1, threads(with_grid(config, 1, 1, "1f1b"), 2)), one);
    EXPECT_EQ(train_threads(4, with_grid(config, 2, 2, "1f1b")), one);
    const TemporaryDirectory directory;
    train_threads(3, uneven_places(config, "gpipe")[0].config, {0, 10, "", directory.path()});
    EXPECT_EQ(train_threads(2, with_grid(config, 1, 2, "1f1b"), {10, 20, directory.path(), ""}),
              one);
  }
}

TEST(LayoutBitsRules, AreThoseOfOneRankWithEveryLrSchedule) {
  for (const std::string_view name : names_of(lr_schedules())) {
    SCOPED_TRACE(name);
    RunConfig config = small_config();
    config.lr.schedule = name;
    const Span span{0, 3, "", ""};
    EXPECT_EQ(train_threads(2, with_grid(config, 2, 1, "1f1b"), span),
              train_threads(1, with_grid(config, 1, 1, "1f1b"), span));
  }
}

TEST(LayoutBitsReference, ThreadsChangeNoBitOfAModelThatIsLargeEnoughToShare) {
  RunConfig config = small_config();
  config.model = {.layers = 2, .width = 192, .heads = 3, .context = 96, .vocab = 301};
  config.batch = {16, 4};
  const Span span{0, 3, "", ""};
  const Outcome one = train_threads(1, with_grid(config, 1, 1, "1f1b"), span);
  EXPECT_EQ(train_threads(1, threads(with_grid(config, 1, 1, "1f1b"), 2), span), one);
  EXPECT_EQ(train_threads(2, threads(with_grid(config, 2, 1, "gpipe"), 2), span), one);
}

/// Returns samples of another source without the targets of sample `first_hidden` and later ones.
class HidingSource final : public BatchSource {
 public:
  HidingSource(BatchSource& source, std::int64_t first_hidden)
      : source_(source), first_hidden_(first_hidden) {}
  void load(std::int64_t step, std::int64_t first, std::int64_t count,
            std::span<const View> views) override {
    source_.load(step, first, count, views);
    const View targets = views[1];
    const std::int64_t shown = std::clamp<std::int64_t>(first_hidden_ - first, 0, count);
    if (!targets.empty())
      std::fill(targets.i32() + shown * fields()[1].elements(),
                targets.i32() + count * fields()[1].elements(), -1);
  }
  std::int64_t valid_targets(std::int64_t step, std::int64_t samples) const override {
    return source_.valid_targets(step, std::min(samples, first_hidden_));
  }
  std::span<const Field> fields() const override { return source_.fields(); }

 private:
  BatchSource& source_;
  std::int64_t first_hidden_;
};

TEST(IgnoredTargets, AreNoPartOfTheMean) {
  RunConfig half = small_config();
  half.batch = {12, 6};
  StepResult without, hidden;
  with_rank_alone(
      half, [&](Trainer& trainer, BatchSource& source) { without = trainer.step(1, source); });
  with_rank_alone(small_config(), [&](Trainer& trainer, BatchSource& source) {
    HidingSource hiding(source, 12);
    hidden = trainer.step(1, hiding);
  });
  EXPECT_NEAR(hidden.loss, without.loss, 1e-12 * without.loss);
  EXPECT_NEAR(hidden.grad_norm, without.grad_norm, 1e-6 * without.grad_norm);
}

TEST(LayoutBitsResume, AtAnotherLayoutEndsWithTheSameBits) {
  const std::vector<RunPlace> grids = grid_places(small_config(), {{1, 1, "1f1b"}, {2, 2, "1f1b"}}),
                              uneven = uneven_places(small_config());
  const RunPlace &one = grids[0], &grid = grids[1], &unlike = uneven[0], &opposite = uneven[1];
  for (const auto& [saves, loads] : {std::pair{grid, one},
                                     {grid, unlike},
                                     {one, grid},
                                     {unlike, grid},
                                     {unlike, one},
                                     {opposite, opposite}}) {
    SCOPED_TRACE(saves.name + " to " + loads.name);
    const TemporaryDirectory directory;
    train_threads(saves.ranks, saves.config, {0, 10, "", directory.path()});
    expect_same_bits({loads}, reference(), {10, 20, directory.path(), ""});
  }
}

TEST(LayoutBitsResume, AKeyThatACheckpointLacksHadItsDefault) {
  const TemporaryDirectory directory;
  const RunConfig config = with_grid(small_config(), 1, 1, "1f1b");
  with_rank_alone(config, [&](Trainer& trainer, BatchSource& source) {
    for (int step = 1; step <= 2; ++step) trainer.step(step, source);
    nlohmann::json identity = numerics_identity(config, "synthetic");
    EXPECT_EQ(identity.erase("model.label_smoothing"), 1);
    save_checkpoint(trainer, directory.path(), 2, identity);
  });
  EXPECT_EQ(train_threads(1, config, {2, 20, directory.path(), ""}), reference());
  RunConfig other = config;
  other.model.label_smoothing = 0.5;
  EXPECT_ERROR(train_threads(1, other, {2, 20, directory.path(), ""}),
               "model.label_smoothing was 0.0, now it is 0.5");
}

}  // namespace
}  // namespace concertina
