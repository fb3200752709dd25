// Over MPI, every layout of the job's ranks has the bits that rank 0 computes alone.
#include <gtest/gtest.h>

#include "parallel/generate/schedule_registry.h"
#include "tests/integration/training.h"
#include "tests/mpi_test.h"

namespace concertina {
namespace {

RunConfig in_bf16() {
  RunConfig config = small_config();
  config.numerics.compute = "bf16";
  return config;
}

/// What rank 0 alone comes to, on every rank.
Outcome alone(const RunConfig& config = small_config()) {
  const bool leads = test::world().rank() == 0;
  const std::unique_ptr<Communicator> self = test::world().split(leads ? 0 : -1, 0);
  Outcome outcome{std::string(64, ' '), 0, 0};
  if (leads) outcome = train_rank(*self, with_grid(config, 1, 1, "1f1b"));
  test::world().broadcast(std::as_writable_bytes(std::span(outcome.state_sha256)), 0).wait();
  test::world().broadcast(std::as_writable_bytes(std::span(&outcome.loss, 1)), 0).wait();
  test::world().broadcast(std::as_writable_bytes(std::span(&outcome.grad_norm, 1)), 0).wait();
  return outcome;
}

TEST(MpiLayout, BitsAreThoseOfOneRank) {
  const int world = test::world().size();
  const Outcome expected = alone();
  for (const std::string schedule : {"gpipe", "1f1b"})
    for (int pp = 1; pp <= world; ++pp)
      for (const bool overlap : {false, true}) {
        if (world % pp != 0) continue;
        SCOPED_TRACE(fmt::format("pp={} dp={} {} {}", pp, world / pp, schedule, overlap));
        RunConfig config = with_grid(small_config(), pp, world / pp, schedule);
        config.parallel.overlap = overlap;
        EXPECT_EQ(train_rank(test::world(), config), expected);
      }
}

TEST(MpiLayout, BitsOfEveryScheduleAreThoseOfOneRank) {
  const int world = test::world().size();
  const Outcome expected = alone();
  for (const Entry<Schedule>& schedule : schedules())
    for (int pp = 2; pp <= world; ++pp) {
      if (world % pp != 0 || pp % schedule.value.rank_step != 0) continue;
      SCOPED_TRACE(fmt::format("pp={} dp={} {}", pp, world / pp, schedule.name));
      const RunConfig config =
          with_grid(small_config(), pp, world / pp, std::string(schedule.name));
      EXPECT_EQ(train_rank(test::world(), config), expected);
    }
}

TEST(MpiLayout, BitsOfAFrozenPrefixAreThoseOfOneRank) {
  const int world = test::world().size();
  for (const int frozen : {1, 4, 6}) {  // of 8 units: parts of stages and whole ones
    RunConfig config = small_config();
    config.freeze.units = frozen;
    config.parallel.partition = "uniform";  // else stages are cut around what is frozen
    const Outcome expected = alone(config);
    EXPECT_NE(expected, alone());
    for (int pp = 1; pp <= world; ++pp) {
      if (world % pp != 0) continue;
      SCOPED_TRACE(fmt::format("pp={} dp={}, {} frozen", pp, world / pp, frozen));
      EXPECT_EQ(train_rank(test::world(), with_grid(config, pp, world / pp, "1f1b")), expected);
    }
  }
}

TEST(MpiLayout, BitsInBf16AreThoseOfOneRank) {
  const int world = test::world().size();
  const Outcome expected = alone(in_bf16());
  EXPECT_NE(expected, alone());
  for (int pp = 1; pp <= world; pp *= 2)
    EXPECT_EQ(train_rank(test::world(), with_grid(in_bf16(), pp, world / pp, "1f1b")), expected);
}

TEST(MpiLayout, BitsOfUnevenPipelinesAreThoseOfOneRank) {
  const int world = test::world().size();
  if (world < 2) GTEST_SKIP() << "one rank has no uneven layout";
  // All ranks but the last in one pipeline, the last by itself.
  Layout layout{{Pipeline{{}, 0, 7}, Pipeline{{{world - 1, 0, 8}}, 7, 12}}};
  for (int s = 0; s < world - 1; ++s)
    layout.pipelines[0].stages.push_back({s, 8 * s / (world - 1), 8 * (s + 1) / (world - 1)});
  const Outcome expected = alone();
  EXPECT_EQ(train_rank(test::world(), with_layout(small_config(), layout, "1f1b")), expected);
}

}  // namespace
}  // namespace concertina
