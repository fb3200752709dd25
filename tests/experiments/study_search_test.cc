// Which trials a search runs, what it costs, and that an interruption changes nothing.
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>

#include "core/error.h"
#include "experiments/study/sampler.h"
#include "experiments/study/trial_process.h"

namespace concertina {
namespace {

constexpr std::int64_t kSteps = 81;

StudySpec toy(const std::string& search) {
  std::string axes;
  for (int i = 1; i <= 27; ++i) axes += fmt::format("{}{}", i == 1 ? "" : ", ", i);
  return read_study_spec(
      fmt::format("[set]\nrun.steps = {}\n[grid]\nrun.seed = [{}]\n{}", kSteps, axes, search),
      "toy.toml", [](std::size_t, const std::string& path) { return path; });
}

constexpr const char* kAsha =
    "[search]\nmethod = \"asha\"\nmetric = \"validation_loss\"\nmin_steps = 9\n";

/// Learning curves: each trial approaches its own final value, with decreasing noise.
class Curves {
 public:
  explicit Curves(std::uint64_t seed) : random_(seed) {
    for (int i = 0; i < 27; ++i) ends_.push_back(2 + 0.1 * i);
    std::shuffle(ends_.begin(), ends_.end(), random_);
    for (int i = 0; i < 27; ++i)
      noise_.push_back(std::uniform_real_distribution(-0.5, 0.5)(random_));
  }
  double loss(int trial, std::int64_t steps) const {
    const auto i = static_cast<std::size_t>(trial - 1);
    return ends_[i] + (2 + noise_[i]) * std::exp(-static_cast<double>(steps) / 12);
  }
  int best() const { return static_cast<int>(std::ranges::min_element(ends_) - ends_.begin()) + 1; }

 private:
  std::mt19937_64 random_;
  std::vector<double> ends_, noise_;
};

/// A study that runs `jobs` tasks at a time on `curves`, each lasting as long as its steps, and may
/// be stopped and restarted after `stop_after` tasks.
struct Simulated {
  std::map<int, TrialRecord> stored;
  std::int64_t cost = 0;  // steps

  void end(const TrialTask& task, const Curves& curves) {
    TrialRecord& trial = stored[task.trial.number];
    const std::int64_t before = trial.rungs.empty() ? 0 : trial.rungs.back().steps;
    cost += task.steps - before;
    trial.number = task.trial.number;
    trial.settings = task.trial.settings;
    trial.state = task.steps == kSteps ? TrialState::done : TrialState::stopped;
    trial.rungs.push_back({task.steps, curves.loss(task.trial.number, task.steps)});
  }
  void run(const StudySpec& spec, const Curves& curves, int jobs, int stop_after = 1 << 30) {
    const std::unique_ptr<Sampler> sampler = method_of(spec.search).make(spec, stored);
    std::multimap<std::int64_t, TrialTask> running;  // by end time
    std::int64_t time = 0;
    for (int ended = 0; ended < stop_after; ++ended) {
      while (static_cast<int>(running.size()) < jobs) {
        std::optional<TrialTask> task = sampler->next(running.empty());
        if (!task) break;
        running.emplace(time + task->steps, std::move(*task));
      }
      if (running.empty()) return;
      const auto first = running.begin();
      time = first->first;
      end(first->second, curves);
      sampler->tell(stored[first->second.trial.number]);
      running.erase(first);
    }
  }
  int best() const {
    int best = 0;
    double least = 1e9;
    for (const auto& [number, trial] : stored)
      if (trial.state == TrialState::done && trial.rungs.back().metric < least) {
        least = trial.rungs.back().metric;
        best = number;
      }
    return best;
  }
};

class Asha : public testing::TestWithParam<int> {};

TEST_P(Asha, FindsTheBestOf27ForLessThanHalfOfTheGrid) {
  const StudySpec spec = toy(kAsha);
  for (std::uint64_t seed = 1; seed <= 20; ++seed) {
    const Curves curves(seed);
    Simulated study;
    study.run(spec, curves, GetParam());
    EXPECT_EQ(study.best(), curves.best()) << "seed " << seed;
    EXPECT_LE(static_cast<double>(study.cost), 0.40 * 27 * kSteps) << "seed " << seed;
    EXPECT_EQ(study.stored.size(), 27u) << "each trial reaches the lowest rung";
  }
}

TEST_P(Asha, AStudyThatWasStoppedFindsTheSame) {
  const StudySpec spec = toy(kAsha);
  const Curves curves(3);
  for (int stop = 1; stop < 40; stop += 3) {
    Simulated study;
    study.run(spec, curves, GetParam(), stop);
    study.run(spec, curves, GetParam(), stop);
    study.run(spec, curves, GetParam());
    EXPECT_EQ(study.best(), curves.best()) << "stopped after " << stop;
    EXPECT_LE(static_cast<double>(study.cost), 0.40 * 27 * kSteps) << "stopped after " << stop;
  }
}

INSTANTIATE_TEST_SUITE_P(Jobs, Asha, testing::Values(1, 2, 4));

TEST(AshaRungs, EndWithTheRun) {
  const SearchMethod& asha = method_of({.method = "asha"});
  const auto rungs_of = [&](std::int64_t factor, std::int64_t steps) {
    return asha.rungs({{"min_steps", std::int64_t{10}}, {"factor", factor}}, steps);
  };
  EXPECT_EQ(rungs_of(3, 100), (std::vector<std::int64_t>{10, 30, 90, 100}));
  EXPECT_EQ(rungs_of(3, 10), (std::vector<std::int64_t>{10}));
  EXPECT_EQ(rungs_of(3, 4), (std::vector<std::int64_t>{4}));
  constexpr std::int64_t kHuge = std::numeric_limits<std::int64_t>::max();
  EXPECT_EQ(rungs_of(100, kHuge).back(), kHuge) << "the product of steps and factor overflows";
  EXPECT_EQ(rungs_of(100, kHuge).size(), 10u);
}

TEST(AshaRungs, TrialsOfUnlikeHeldOutDataAreNotRanked) {
  const StudySpec spec = toy(kAsha);
  const std::unique_ptr<Sampler> sampler = method_of(spec.search).make(spec, {});
  const auto ended = [](int number, const char* data) {
    TrialRecord trial;
    trial.number = number;
    trial.state = TrialState::stopped;
    trial.metrics = {{"validation_loss", 2}, {"validation_tokens", 100}};
    trial.facts = {{"validation_data", data}, {"validation_measure", "causal-lm"}};
    trial.rungs = {{9, 2}};
    return trial;
  };
  sampler->tell(ended(1, "a"));
  sampler->tell(ended(2, "a"));
  EXPECT_THROW(sampler->tell(ended(3, "b")), Error);
}

TEST(AshaRungs, FailedTrialsDoNotGoOn) {
  const StudySpec spec = toy(kAsha);
  const Curves curves(1);
  const std::unique_ptr<Sampler> sampler = method_of(spec.search).make(spec, {});
  std::set<int> later;
  while (const std::optional<TrialTask> task = sampler->next(true)) {
    TrialRecord trial;
    trial.number = task->trial.number;
    if (task->steps > 9) later.insert(task->trial.number);
    if (task->trial.number == curves.best()) {
      trial.state = TrialState::failed;
    } else {
      trial.state = TrialState::stopped;
      for (const std::int64_t steps : method_of(spec.search).rungs(spec.search.options, kSteps))
        if (steps <= task->steps)
          trial.rungs.push_back({steps, curves.loss(task->trial.number, steps)});
    }
    sampler->tell(trial);
  }
  EXPECT_FALSE(later.contains(curves.best()));
  EXPECT_FALSE(later.empty());
}

TEST(ListSampler, RunsWhatIsLeftInOrder) {
  const StudySpec spec = toy("");
  std::map<int, TrialRecord> before;
  before[1].state = TrialState::done;
  before[2].state = TrialState::open;
  before[3].state = TrialState::failed;
  const std::unique_ptr<Sampler> sampler = method_of(spec.search).make(spec, before);
  EXPECT_EQ(sampler->left(), 25);
  EXPECT_EQ(sampler->next(true)->trial.number, 2);
  EXPECT_EQ(sampler->next(false)->trial.number, 4);
}

TEST(StopRule, EndsATrialForItsFigures) {
  StopSection stop;
  stop.metric = "loss";
  stop.has_above = true;
  stop.above = 5;
  stop.after = 3;
  StopRule above(stop, true);
  EXPECT_EQ(above.see(2, 9.0), "") << "it has steps left";
  EXPECT_EQ(above.see(3, 4.9), "");
  EXPECT_NE(above.see(4, 5.1).find("above 5"), std::string::npos);
  EXPECT_NE(above.see(5, std::nan("")), "");

  StopSection wait;
  wait.metric = "loss";
  wait.patience = 2;
  StopRule patient(wait, true);
  EXPECT_EQ(patient.see(1, 3.0), "");
  EXPECT_EQ(patient.see(2, 3.5), "");
  EXPECT_EQ(patient.see(3, 2.9), "");
  EXPECT_EQ(patient.see(4, 2.9), "");
  EXPECT_NE(patient.see(5, 3.0).find("not better than 2.9000 for 2 values"), std::string::npos);
}

}  // namespace
}  // namespace concertina
