// Training in bf16: the same bits with every layout, schedule, number of threads and resume; half the
// message sizes; the losses of fp32; and checkpoints that can be continued with either precision.
#include <gtest/gtest.h>

#include <cmath>

#include "tests/integration/training.h"
#include "tests/planned.h"
#include "tests/temporary_directory.h"
#include "tests/threads/thread_communicator.h"

namespace concertina {
namespace {

RunConfig in(std::string compute, RunConfig config = small_config()) {
  config.numerics.compute = std::move(compute);
  return config;
}

const Outcome& bf16_reference() {
  static const Outcome outcome = train_threads(1, with_grid(in("bf16"), 1, 1, "1f1b"));
  return outcome;
}

TEST(Bf16Bits, AreThoseOfOneRankAtEveryLayoutAndSchedule) {
  std::vector<RunPlace> places = grid_places(in("bf16"), {{1, 1, "gpipe"},
                                                          {2, 1, "1f1b"},
                                                          {2, 1, "gpipe"},
                                                          {1, 2, "1f1b"},
                                                          {4, 1, "zb-h1"},
                                                          {1, 4, "gpipe"},
                                                          {2, 2, "1f1b"},
                                                          {2, 1, "interleaved-1f1b"},
                                                          {2, 1, "zb-v"},
                                                          {2, 2, "dualpipe"}});
  for (RunPlace place : std::vector(places)) {
    if (place.ranks != 2) continue;
    place.config.parallel.overlap = true;
    place.config.run.threads = 2;
    places.push_back(place);
  }
  expect_same_bits(places, bf16_reference(), {});
}

TEST(Bf16Bits, ThreadsChangeNoneOfAModelThatIsLargeEnoughToShare) {
  RunConfig config = with_grid(in("bf16"), 1, 1, "1f1b");
  config.model = {.layers = 2, .width = 192, .heads = 3, .context = 96, .vocab = 301};
  config.batch = {16, 4};
  const Span span{0, 3, "", ""};
  const Outcome one = train_threads(1, config, span);
  for (const int threads : {2, 3}) {
    config.run.threads = threads;
    EXPECT_EQ(train_threads(1, config, span), one) << threads << " threads";
  }
}

TEST(Bf16Bits, OfAResumeAtAnotherLayoutAreThoseOfTheWhole) {
  const TemporaryDirectory directory;
  train_threads(4, with_grid(in("bf16"), 2, 2, "1f1b"), {0, 10, "", directory.path()});
  EXPECT_EQ(train_threads(1, with_grid(in("bf16"), 1, 1, "gpipe"), {10, 20, directory.path(), ""}),
            bf16_reference());
}

/// A checkpoint holds fp32 in either precision: the state is restored, and training continues.
TEST(Precision, ACheckpointOfOneServesTheOther) {
  for (const auto& [before, after] : {std::pair{"fp32", "bf16"}, {"bf16", "fp32"}}) {
    SCOPED_TRACE(std::string(before) + " to " + after);
    const TemporaryDirectory saved;
    const Outcome half =
        train_threads(1, with_grid(in(before), 1, 1, "1f1b"), {0, 10, "", saved.path()});
    EXPECT_EQ(train_threads(2, with_grid(in(after), 2, 1, "1f1b"), {10, 10, saved.path(), ""})
                  .state_sha256,
              half.state_sha256);
    const Span rest{10, 20, saved.path(), ""};
    const Outcome whole = train_threads(1, with_grid(in(after), 1, 1, "1f1b"), rest);
    EXPECT_EQ(train_threads(4, with_grid(in(after), 2, 2, "gpipe"), rest), whole);
    EXPECT_NE(train_threads(1, with_grid(in(before), 1, 1, "1f1b"), rest), whole);
    EXPECT_LT(std::abs(whole.loss / bf16_reference().loss - 1), 0.01);
  }
}

/// Returns the losses of all steps.
std::vector<double> curve(const RunConfig& config, int steps) {
  std::vector<double> losses;
  with_rank_alone(config, [&](Trainer& trainer, BatchSource& source) {
    for (int step = 1; step <= steps; ++step) losses.push_back(trainer.step(step, source).loss);
  });
  return losses;
}

TEST(Precision, TheLossesOfBf16AreThoseOfFp32WithinAHalfPercentInTheMean) {
  constexpr int kSteps = 120;
  RunConfig config = small_config();
  config.run.steps = kSteps;
  config.optimizer.lr = 3e-3;
  const std::vector<double> wide = curve(config, kSteps),
                            narrow = curve(in("bf16", config), kSteps);
  EXPECT_LT(wide.back(), 0.7 * wide.front()) << "the model does not learn";
  EXPECT_NE(wide.back(), narrow.back());
  // The losses of single steps differ more or less, depending on the rounding.
  double sum = 0;
  for (int step = 0; step < kSteps; ++step) {
    const auto at = static_cast<std::size_t>(step);
    const double apart = std::abs(narrow[at] / wide[at] - 1);
    EXPECT_LT(apart, 0.02) << "step " << step + 1;
    sum += apart;
  }
  EXPECT_LT(sum / kSteps, 0.005);
}

TEST(Precision, ActivationsAndMessagesAreHalfAsLargeInBf16) {
  const auto memory = [](const std::string& compute) {
    const RunConfig config = with_grid(in(compute), 2, 1, "1f1b");
    const PlannedJob run = planned(config, 2);
    const std::vector<RankMemory> ranks = predict_memory(config, run.job, run, 1);
    std::map<std::string, std::size_t> bytes;
    for (const auto& part : ranks[0].parts) bytes[std::string(part.name)] = part.bytes;
    EXPECT_EQ(run.job.model.boundary_bytes,
              static_cast<std::size_t>(run.job.model.rows() * config.model.width) *
                  size_of(run.job.model.activation));
    return bytes;
  };
  auto wide = memory("fp32"), narrow = memory("bf16");
  EXPECT_EQ(2 * narrow["stage boundaries"], wide["stage boundaries"]);
  EXPECT_LT(narrow["activations"], 0.55 * static_cast<double>(wide["activations"]));
  for (const char* same : {"weights", "optimizer state", "gradients", "batch"})
    EXPECT_EQ(narrow[same], wide[same]) << same;
}

}  // namespace
}  // namespace concertina
