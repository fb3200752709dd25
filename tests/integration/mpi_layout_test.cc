// Over MPI, every layout of the job's ranks gives the bits that rank 0 computes alone.
#include <gtest/gtest.h>

#include "parallel/generate/schedule_registry.h"
#include "tests/integration/training.h"
#include "tests/mpi_test.h"

namespace concertina {
namespace {

/// Returns the result of rank 0 alone, on every rank.
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

/// Checks every grid of all ranks that a schedule supports.
void expect_bits_of_one_rank(const RunConfig& config, const Outcome& expected,
                             const std::string& schedule) {
  const int world = test::world().size();
  for (int pp = 1; pp <= world; ++pp)
    if (world % pp == 0 && pp % find_schedule(schedule).value.rank_step == 0) {
      EXPECT_EQ(train_rank(test::world(), with_grid(config, pp, world / pp, schedule)), expected)
          << fmt::format("pp={} dp={} {}", pp, world / pp, schedule);
    }
}

TEST(MpiLayout, BitsAreThoseOfOneRank) {
  RunConfig config = small_config();
  const Outcome expected = alone();
  for (const Entry<Schedule>& schedule : schedules())
    expect_bits_of_one_rank(config, expected, std::string(schedule.name));
  config.parallel.overlap = true;
  for (const char* schedule : {"gpipe", "1f1b"})
    expect_bits_of_one_rank(config, expected, schedule);
}

TEST(MpiLayout, BitsOfAFrozenPrefixAndInBf16AreThoseOfOneRank) {
  const Outcome plain = alone();
  RunConfig config = small_config();
  config.parallel.partition = "uniform";   // else the frozen units determine the cuts
  for (const int frozen : {1, 4, 6, 0}) {  // of 8 units: parts of stages and whole stages
    config.freeze.units = frozen;
    if (frozen == 0) config.numerics.compute = "bf16";
    const Outcome expected = alone(config);
    EXPECT_NE(expected, plain);
    expect_bits_of_one_rank(config, expected, "1f1b");
  }
}

TEST(MpiLayout, BitsOfUnevenPipelinesAreThoseOfOneRank) {
  const int world = test::world().size();
  if (world < 2) GTEST_SKIP() << "one rank has no uneven layout";
  // All ranks but the last in one pipeline, the last one alone in another.
  Layout layout{{Pipeline{{}, 0, 7}, Pipeline{{{world - 1, 0, 8}}, 7, 12}}};
  for (int s = 0; s < world - 1; ++s)
    layout.pipelines[0].stages.push_back({s, 8 * s / (world - 1), 8 * (s + 1) / (world - 1)});
  const Outcome expected = alone();
  EXPECT_EQ(train_rank(test::world(), with_layout(small_config(), layout, "1f1b")), expected);
}

}  // namespace
}  // namespace concertina
