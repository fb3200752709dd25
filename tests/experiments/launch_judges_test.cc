// Launch judges on recorded facts, one look every 0.2 s.
#include "experiments/supervise/launch_judges.h"

#include <gtest/gtest.h>

#include <vector>

namespace concertina {
namespace {

constexpr double kLook = 0.2, kFirst = 100;

/// `count` looks with the same facts.
struct Stretch {
  int count;
  ProcessFacts facts;
};

/// Returns the seconds of the last stretch until the verdict `kind`; -1: there is none.
template <class Judge>
double judged(FaultKind kind, Judge judge, const std::vector<Stretch>& stretches) {
  double at = kFirst, start = 0;
  for (Stretch stretch : stretches) {
    start = at;
    for (int i = 0; i < stretch.count; ++i) {
      stretch.facts.at = at;
      if (const Verdict end = judge.look(stretch.facts)) {
        EXPECT_EQ(end->kind, kind);
        return at - start;
      }
      at += kLook;
    }
  }
  return -1;
}

TEST(LaunchJudges, FindFaultsInTime) {
  const auto absent = [](const std::vector<Stretch>& looks) {
    return judged(FaultKind::died, Absence(), looks);
  };
  const Stretch all{10, {.ranks = 4, .started = 4}}, one{1000, {.ranks = 1, .started = 4}};
  EXPECT_NEAR(absent({all, one}), Absence::kAloneSeconds, 3 * kLook);
  EXPECT_NEAR(absent({one}), Absence::kArriveSeconds, 3 * kLook);
  EXPECT_EQ(absent({{40, one.facts}, all, {1000, {.started = 4}}}), -1) << "all have ended";
  EXPECT_NEAR(absent({{10, {.ranks = 2}}, {99, {.ranks = 1}}}), Absence::kAloneSeconds, 3 * kLook)
      << "MPI does not say how many ranks there are";
  EXPECT_EQ(absent({{1000, {.ranks = 1}}}), -1);

  const auto stopped = [](const std::vector<Stretch>& looks) {
    return judged(FaultKind::stopped, StoppedRanks(), looks);
  };
  const Stretch run{10, {.ranks = 2}}, brief{4, {.ranks = 2, .stopped = 1}};
  EXPECT_NEAR(stopped({run, {99, {.ranks = 2, .stopped = 2}}}), kStopLimit.seconds, 3 * kLook);
  EXPECT_NEAR(stopped({run, {99, brief.facts}}), StoppedRanks::kOneLimit.seconds, 3 * kLook);
  EXPECT_EQ(stopped({run, brief, run, brief, run, brief, run}), -1);

  const auto launching = [](const std::vector<Stretch>& looks) {
    return judged(FaultKind::launcher, Launching(kFirst), looks);
  };
  const int start = static_cast<int>(Launching::kStartSeconds / kLook);
  EXPECT_NEAR(launching({run, {100, {}}}), Launching::kReturnSeconds, 3 * kLook);
  EXPECT_EQ(launching({{start - 10, {}}}), -1);
  EXPECT_NEAR(launching({{start + 10, {}}}), Launching::kStartSeconds, 3 * kLook);
  EXPECT_EQ(launching({{start + 10, {.begun = true}}}), -1);
}

TEST(LaunchJudges, ExcuseRanksThatWereLostInPlace) {
  Absence absence;
  double at = kFirst;
  const auto look = [&](std::size_t ranks) {
    return absence.look({.at = at += kLook, .ranks = ranks, .started = 3});
  };
  for (int i = 0; i < 10; ++i) EXPECT_FALSE(look(3));
  for (int i = 0; i < 20; ++i) {  // until they decide
    absence.excuse(at + kLook);
    EXPECT_FALSE(look(2));
  }
  absence.lose();
  for (int i = 0; i < 100; ++i) EXPECT_FALSE(look(2));
  int looks = 0;
  while (!look(1) && looks < 100) ++looks;
  EXPECT_NEAR(kLook * looks, Absence::kAloneSeconds, 3 * kLook);
}

/// This process was stopped together with the ranks, so one look is late.
TEST(LaunchJudges, CountLooks) {
  StoppedRanks stopped;
  EXPECT_FALSE(stopped.look({.at = 1, .ranks = 2}));
  EXPECT_FALSE(stopped.look({.at = 1000, .ranks = 2, .stopped = 2}));
  EXPECT_FALSE(stopped.look({.at = 1000.2, .ranks = 2}));
}

TEST(LaunchJudges, SeeAStoppedLauncherAndAskHostsMoreRarely) {
  Launching launching(0);
  int continued = 0;
  std::vector<double> asked;
  for (double at = 0; at < 30; at += kLook) {
    const ProcessFacts facts{.at = at, .launcher_stopped = at<4, .begun = at> 20};
    continued += launching.is_stopped(facts);
    if (launching.asks_hosts(facts)) asked.push_back(at);
  }
  EXPECT_GE(continued, 2);  // SIGCONT may fail, so it is sent every 1.2 s
  EXPECT_LE(continued, 3);
  ASSERT_EQ(asked.size(), 3U);
  for (int i = 0; i < 3; ++i) EXPECT_NEAR(asked[i], Launching::kQuestionSeconds * (1 << i), kLook);
}

/// Returns the message after launches that end like `ended` with the run at these steps.
std::string said_after(const std::vector<std::int64_t>& newest, EndedLaunch ended,
                       std::optional<int> max_restarts = {}) {
  RestartPolicy policy(max_restarts, 10, 0);
  for (const std::int64_t step : newest) {
    ended.newest = step;
    if (const auto stop = policy.after(ended)) return stop->why;
  }
  return "";
}

TEST(RestartPolicy, RestartsAsLongAsThereAreNewStates) {
  const EndedLaunch died{.end = {FaultKind::died, "rank 1 has died"}};
  EXPECT_EQ(said_after({10, 20, 30, 30, 30, 30, 30, 40}, died), "");
  EXPECT_EQ(said_after({10, 10, 10, 10, 10, 10}, died),
            "5 launches in a row ended before a new checkpoint (checkpoint.every = 10)");
  EXPECT_EQ(said_after({10, 20, 30}, died, 2), "reached the limit of 2 restarts (--max-restarts)");
  RestartPolicy policy({}, 10, 0);
  std::vector<double> waits;
  for (const std::int64_t step : {10, 10, 10, 10, 20}) {
    EXPECT_FALSE(policy.after({.end = died.end, .newest = step}));
    waits.push_back(policy.pause());
  }
  EXPECT_EQ(waits, (std::vector<double>{0, 0.25, 0.5, 1, 0}));
}

TEST(RestartPolicy, DoesNotRepeatWhatWouldFailAgain) {
  const std::string refused = "the launch was refused and would be refused again";
  EXPECT_EQ(said_after({5}, {.end = {FaultKind::refused}}), refused);
  EXPECT_EQ(said_after({5}, {.end = {.kind = FaultKind::ended, .code = 2}}), refused);
  EXPECT_EQ(said_after({5}, {.end = {FaultKind::refused}, .older = true}), "");
  const std::string again = "rerunning the command would fail again at the same place";
  EXPECT_EQ(said_after({5}, {.end = {FaultKind::diverged}}), again);
  EXPECT_EQ(said_after({5, 5}, {.end = {FaultKind::failed, "x"}}), again);
  EXPECT_EQ(said_after({5, 6}, {.end = {FaultKind::failed, "x"}}), "");
  EndedLaunch never{.end = {FaultKind::ended, "7", 0, 7}, .hosts = "a", .any_begun = false};
  EXPECT_EQ(said_after({0}, never), "");
  EXPECT_NE(said_after({0, 0}, never).find("before their ranks started"), std::string::npos);
  RestartPolicy policy({}, 10, 0);
  EXPECT_FALSE(policy.after(never));
  never.hosts = "b";  // other hosts are tried
  EXPECT_FALSE(policy.after(never));
  EXPECT_TRUE(policy.after(never));
}

}  // namespace
}  // namespace concertina
