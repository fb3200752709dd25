// A layout never changes the result: SHA-256 of weights and optimizer state, loss and gradient norm
// after 20 steps are the same bits at every layout, number of threads and resume.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <map>

#include "experiments/config/schedule_file.h"
#include "models/lr_schedule.h"
#include "models/optimizer.h"
#include "parallel/generate/schedule_registry.h"
#include "tests/integration/training.h"
#include "tests/planned.h"
#include "tests/temporary_directory.h"

namespace concertina {
namespace {

struct Case {
  std::string name;
  int ranks = 1;
  RunConfig config;
};

RunConfig threads(RunConfig config, int count) {
  config.run.threads = count;
  return config;
}

RunConfig chunks(RunConfig config, int count) {
  config.parallel.chunks = count;
  return config;
}

/// 3 = 2 + 1: pipelines of different depth.
Layout two_and_one() {
  return {{Pipeline{{{0, 0, 4}, {1, 4, 8}}, 0, 8}, Pipeline{{{2, 0, 8}}, 8, 12}}};
}

/// Two pipelines of opposite direction on the same ranks.
Layout opposite() {
  return {{Pipeline{{{0, 0, 3}, {1, 3, 8}}, 0, 5}, Pipeline{{{1, 0, 4}, {0, 4, 8}}, 5, 12}}};
}

/// One rank holds both ends of the model.
Layout v_shape() {
  return {{Pipeline{{{0, 0, 2}, {1, 2, 5}, {0, 5, 8}}, 0, 12}}};
}

std::vector<Case> cases() {
  const RunConfig base = small_config();
  std::vector<Case> all;
  for (const std::string schedule : {"gpipe", "1f1b"}) {
    const auto grid = [&](const std::string& name, int pp, int dp) {
      all.push_back({name + " " + schedule, pp * dp, with_grid(base, pp, dp, schedule)});
    };
    grid("one rank", 1, 1);
    grid("pp=2", 2, 1);
    grid("pp=4", 4, 1);
    grid("dp=2", 1, 2);
    grid("dp=3", 1, 3);
    grid("dp=4", 1, 4);
    grid("2x2", 2, 2);
    all.push_back({"3=2+1 " + schedule, 3, with_layout(base, two_and_one(), schedule)});
    all.push_back({"interleaved " + schedule, 2, chunks(with_grid(base, 2, 1, schedule), 2)});
    all.push_back({"opposite " + schedule, 2, with_layout(base, opposite(), schedule)});
    all.push_back({"V " + schedule, 2, with_layout(base, v_shape(), schedule)});
    for (Case one : std::vector(all.end() - 11, all.end())) {
      one.name += " overlapped";
      one.config.parallel.overlap = true;
      all.push_back(one);
    }
  }
  for (const Entry<Schedule>& schedule : schedules()) {
    const std::string name(schedule.name);
    for (const auto& [pp, dp] : {std::pair{1, 1}, {2, 1}, {4, 1}, {2, 2}}) {
      const bool above = name == "gpipe" || name == "1f1b";
      if (above || pp % schedule.value.rank_step != 0) continue;
      all.push_back(
          {fmt::format("pp={} dp={} {}", pp, dp, name), pp * dp, with_grid(base, pp, dp, name)});
    }
  }
  all.push_back({"one rank, 2 threads", 1, threads(with_grid(base, 1, 1, "1f1b"), 2)});
  all.push_back({"2x2, 2 threads", 4, threads(with_grid(base, 2, 2, "1f1b"), 2)});
  return all;
}

const Outcome& reference() {
  static const Outcome outcome = train_threads(1, with_grid(small_config(), 1, 1, "1f1b"));
  return outcome;
}

class LayoutBits : public testing::TestWithParam<Case> {};

TEST_P(LayoutBits, AreThoseOfOneRank) {
  EXPECT_EQ(train_threads(GetParam().ranks, GetParam().config), reference());
}

INSTANTIATE_TEST_SUITE_P(All, LayoutBits, testing::ValuesIn(cases()), [](const auto& one) {
  std::string name;
  for (const char c : one.param.name) name += std::isalnum(c) != 0 ? c : '_';
  return name;
});

TEST(LayoutBitsReference, TheModelLearnsAndTheSeedMatters) {
  EXPECT_LT(reference().loss, 0.99 * std::log(61.0));
  EXPECT_GT(reference().grad_norm, 0);
  RunConfig other = small_config();
  other.run.seed = 2;
  EXPECT_NE(train_threads(1, other).state_sha256, reference().state_sha256);
}

TEST(LayoutBitsReference, OverlapsAreThereToBeTested) {
  const auto overlaps = [](const RunConfig& config, int world) {
    const Plan plan = planned(config, world).plan;
    return to_text(plan).find("OVERLAP_F_B") != std::string::npos;
  };
  int count = 0;
  for (const Case& one : cases()) {
    EXPECT_TRUE(one.config.parallel.overlap || !overlaps(one.config, one.ranks)) << one.name;
    count += overlaps(one.config, one.ranks);
  }
  EXPECT_GE(count, 12);
}

TEST(LayoutBitsFiles, OfPyTorchTrainToTheSameBits) {
  const Span span{0, 3, "", ""};
  std::map<int, Outcome> references;  // by microbatches
  int trained = 0;
  for (const auto& entry : std::filesystem::directory_iterator(CONCERTINA_PYTORCH)) {
    const std::string name = entry.path().filename();
    // PyTorch's order of the last rank is wrong there (tests/parallel_plan/pytorch_test.cc).
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

/// Each optimizer with an own option and each lr schedule, at layouts that cut tensors differently,
/// and over a resume at another layout.
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
    train_threads(3, with_layout(config, two_and_one(), "gpipe"), {0, 10, "", directory.path()});
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

/// The samples of another source without the targets of sample `first_hidden` and those after it.
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

struct Resume {
  Case saves, loads;
};

TEST(LayoutBitsResume, AtAnotherLayoutEndsWithTheSameBits) {
  const RunConfig base = small_config();
  const Case one{"one rank", 1, with_grid(base, 1, 1, "1f1b")};
  const Case grid{"2x2", 4, with_grid(base, 2, 2, "1f1b")};
  const Case uneven{"3=2+1", 3, with_layout(base, two_and_one(), "gpipe")};
  const Case both{"opposite", 2, with_layout(base, opposite(), "1f1b")};
  for (const auto& [saves, loads] : std::vector<Resume>{
           {grid, one}, {grid, uneven}, {one, grid}, {uneven, grid}, {uneven, one}, {both, both}}) {
    SCOPED_TRACE(saves.name + " to " + loads.name);
    const TemporaryDirectory directory;
    train_threads(saves.ranks, saves.config, {0, 10, "", directory.path()});
    EXPECT_EQ(train_threads(loads.ranks, loads.config, {10, 20, directory.path(), ""}),
              reference());
  }
}

}  // namespace
}  // namespace concertina
