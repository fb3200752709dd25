// Users' own schedules: which values are paths, what a file requires of config and world size, and
// that a matching one gives a valid layout and an accepted plan.
#include "experiments/config/schedule_file.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>

#include "experiments/config/config_toml.h"
#include "experiments/run/planning.h"
#include "parallel/plan/check.h"
#include "tests/errors.h"
#include "tests/planned.h"
#include "tests/temporary_directory.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

constexpr const char* kTwoRanks =
    "0F0,0F1,0B0,0F2,0B1,0F3,0B2,0B3\n"
    "1F0,1B0,1F1,1B1,1F2,1B2,1F3,1B3\n";
/// Two stages per rank, one microbatch, including transfers.
constexpr const char* kInterleaved =
    "0F0,0SEND_F0,2RECV_F0,2F0,2SEND_F0,2RECV_B0,2B0,2REDUCE_GRAD,2SEND_B0,0RECV_B0,0B0,"
    "0REDUCE_GRAD,0UNSHARD\n"
    "1RECV_F0,1F0,1SEND_F0,3RECV_F0,3F0,3B0,3SEND_B0,3REDUCE_GRAD,1RECV_B0,1B0,1SEND_B0,"
    "1REDUCE_GRAD\n";

class ScheduleFiles : public testing::Test {
 protected:
  std::string write(const std::string& name, const std::string& text) const {
    const std::string path = directory_.path() + "/" + name;
    std::ofstream(path) << text;
    return path;
  }

  static RunConfig config(const std::string& path, int microbatches) {
    RunConfig config;
    config.model = {.layers = 3, .width = 48, .heads = 4, .context = 20, .vocab = 256};
    config.batch = {24, microbatches};
    config.parallel.schedule = path;
    return config;
  }

  static void expect_refused(const RunConfig& config, int world, const std::string& text) {
    const Error error = input_error([&] { planned(config, world); });
    expect_has(error.message(), text);
    EXPECT_FALSE(error.where().empty());
    EXPECT_FALSE(error.fix().empty());
  }

  TemporaryDirectory directory_;
};

TEST_F(ScheduleFiles, AreTheValuesThatNameAPath) {
  for (const char* name : {"1f1b", "2f2b", ""}) EXPECT_FALSE(is_schedule_file(name)) << name;
  for (const char* path : {"/a", "a.csv", "./a", "1f1b/"}) EXPECT_TRUE(is_schedule_file(path));
  const fs::path before = fs::current_path();
  write("own", kTwoRanks);
  write("gpipe", kTwoRanks);
  fs::current_path(directory_.path());
  EXPECT_TRUE(is_schedule_file("own"));
  EXPECT_FALSE(is_schedule_file("gpipe"));
  fs::current_path(before);
}

TEST_F(ScheduleFiles, AreAbsoluteInAResolvedConfig) {
  RunConfig config;
  EXPECT_THROW(set_config("parallel.schedule=2f2b", config), Error);
  set_config("parallel.schedule=sub/../a.csv", config);
  RunConfig resolved = with_absolute_paths(config);
  EXPECT_EQ(resolved.parallel.schedule, (fs::current_path() / "a.csv").string());
  RunConfig again;
  read_config(write_config(resolved), "config.toml", again);
  EXPECT_EQ(again.parallel.schedule, resolved.parallel.schedule);
  set_config("parallel.schedule=gpipe", config);
  EXPECT_EQ(with_absolute_paths(config).parallel.schedule, "gpipe");
}

TEST_F(ScheduleFiles, RunAtTheLayoutThatTheyImply) {
  const PlannedJob run = planned(config(write("a.csv", kTwoRanks), 4), 2);
  ASSERT_EQ(run.layout.pipelines.size(), 1u);
  const auto& stages = run.layout.pipelines[0].stages;
  ASSERT_EQ(stages.size(), 2u);
  EXPECT_EQ(stages[0].rank, 0);
  EXPECT_EQ(stages[1], (StagePlacement{1, stages[0].last_unit, 8}));
  EXPECT_FALSE(check(run.plan, run.layout));

  const PlannedJob chunks = planned(config(write("b.csv", kInterleaved), 1), 2);
  ASSERT_EQ(chunks.layout.pipelines[0].stages.size(), 4u);
  for (int s = 0; s < 4; ++s) EXPECT_EQ(chunks.layout.stage(s).rank, s % 2);
  // The file's order is kept; actions that only PyTorch needs are removed, and STEP is added.
  EXPECT_EQ(to_text(chunks.plan),
            "0F0,0SEND_F0,2RECV_F0,2F0,2SEND_F0,2RECV_B0,2B0,2REDUCE_GRAD,2SEND_B0,0RECV_B0,0B0,"
            "0REDUCE_GRAD,STEP\n"
            "1RECV_F0,1F0,1SEND_F0,3RECV_F0,3F0,3B0,3SEND_B0,3REDUCE_GRAD,1RECV_B0,1B0,1SEND_B0,"
            "1REDUCE_GRAD,STEP\n");
}

TEST_F(ScheduleFiles, HaveReplicasInALargerWorld) {
  const std::string path = write("a.csv", kTwoRanks);
  for (const int copies : {1, 2, 3}) {
    RunConfig whole = config(path, 4 * copies);
    const PlannedJob run = planned(whole, 2 * copies);
    EXPECT_EQ(short_form(run.layout), fmt::format("pp2xdp{}", copies));
    EXPECT_FALSE(check(run.plan, run.layout));
    whole.parallel.pp = 2;
    whole.parallel.dp = copies;
    EXPECT_EQ(planned(whole, 2 * copies).layout, run.layout);
  }
}

TEST_F(ScheduleFiles, RunAtALayoutThatIsGiven) {
  RunConfig own = config(write("a.csv", kTwoRanks), 4);
  own.parallel.layout = {{Pipeline{{{0, 0, 1}, {1, 1, 8}}, 0, 4}}};
  EXPECT_EQ(planned(own, 2).layout, own.parallel.layout);
  own.parallel.layout = {{Pipeline{{{1, 0, 1}, {0, 1, 8}}, 0, 4}}};
  expect_refused(own, 2, "stage 0 is on rank 1");
}

TEST_F(ScheduleFiles, OverlapOnRequest) {
  RunConfig own = config(write("a.csv", kTwoRanks), 4);
  EXPECT_EQ(to_text(planned(own, 2).plan).find("OVERLAP"), std::string::npos);
  own.parallel.overlap = true;
  expect_has(to_text(planned(own, 2).plan), "OVERLAP");
}

TEST_F(ScheduleFiles, ThatDoNotFitAreRefused) {
  const std::string path = write("a.csv", kTwoRanks);
  expect_refused(config(path, 4), 3, "is a schedule for 2 ranks, but the run has 3 ranks");
  expect_refused(config(path, 4), 1, "is a schedule for 2 ranks, but the run has 1 rank");
  expect_refused(config(path, 8), 2,
                 "has 4 microbatches per replica, but a step has 8 for 1 replica");
  expect_refused(config(path, 4), 4,
                 "has 4 microbatches per replica, but a step has 4 for 2 replicas");
  RunConfig wrong = config(path, 4);
  wrong.parallel.pp = 1;
  expect_refused(wrong, 2, "parallel.pp = 1");
  wrong = config(path, 8);
  wrong.parallel.dp = 4;
  expect_refused(wrong, 4, "parallel.dp = 4");
  wrong = config(path, 4);
  wrong.parallel.chunks = 2;
  expect_refused(wrong, 2, "parallel.chunks = 2");
  std::string deep, back;
  for (int s = 0; s < 9; ++s) {
    deep += fmt::format("{}{}F0", s > 0 ? "," : "", s);
    back += fmt::format(",{}B0", 8 - s);
  }
  expect_refused(config(write("deep.csv", deep + back), 1), 1,
                 "of 9 stages, but the model has 8 units");
}

TEST_F(ScheduleFiles, ThatAreWrongAreRefused) {
  expect_refused(config(directory_.path() + "/none.csv", 4), 2, "schedule file not found");
  expect_refused(config(directory_.path(), 4), 2, "cannot read");
  expect_refused(config(write("empty.csv", ""), 4), 2, "the schedule file is empty");
  expect_refused(config(write("noise.csv", "0F0,hello\n"), 1), 1, "'hello' is not an action");
  expect_refused(config(write("missing.csv", "0F0,0B0,0F1\n"), 2), 1, "0B1 is missing");
  expect_refused(config(write("crossed.csv",
                              "0F0,0F1,0SEND_F0,0SEND_F1,0RECV_B0,0B0,0RECV_B1,0B1\n"
                              "1RECV_F1,1RECV_F0,1F0,1F1,1B0,1SEND_B0,1B1,1SEND_B1\n"),
                        2),
                 2, "sent by rank 0");
}

}  // namespace
}  // namespace concertina
