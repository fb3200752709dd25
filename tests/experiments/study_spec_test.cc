// Study files: what is allowed, which trials follow, and one clear error for what is not allowed.
#include "experiments/study/study_spec.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "experiments/study/study_overrides.h"
#include "tests/errors.h"
#include "tests/experiments/config_text.h"

namespace concertina {
namespace {

StudySpec spec_of(const std::string& toml) {
  return read_study_spec(toml, "s.toml", [](std::size_t, const std::string& path) { return path; });
}

std::vector<std::string> values_of(const StudySpec& spec, const std::string& key) {
  std::vector<std::string> values;
  for (const Trial& trial : trials_of(spec))
    for (const auto& [name, value] : trial.settings)
      if (name == key) values.push_back(value);
  return values;
}

TEST(StudySpec, TrialsAreInTheOrderOfTheFileSeedsLast) {
  const StudySpec spec = spec_of(R"(
seeds = [7, 8]
[set]
run.steps = 30
[grid]
parallel.schedule = ["zb-v", "1f1b"]
[[zip]]
parallel.pp = [2, 1]
parallel.dp = [1, 2]
)");
  EXPECT_EQ(axes_of(spec), (std::vector<std::string>{"parallel.schedule", "parallel.pp",
                                                     "parallel.dp", "run.seed"}));
  const std::vector<Trial> trials = trials_of(spec);
  ASSERT_EQ(trials.size(), 8u);
  EXPECT_EQ(trials[1].settings, (Settings{{"parallel.schedule", "zb-v"},
                                          {"parallel.pp", "1"},
                                          {"parallel.dp", "2"},
                                          {"run.seed", "7"}}));
  EXPECT_EQ(trials[6].settings, (Settings{{"parallel.schedule", "1f1b"},
                                          {"parallel.pp", "2"},
                                          {"parallel.dp", "1"},
                                          {"run.seed", "8"}}));
  const RunConfig config = config_of(spec, trials[6].settings);
  EXPECT_EQ(config.run.steps, 30);
  EXPECT_EQ(config.parallel.pp, 2);
  EXPECT_EQ(config.run.seed, 8);
  EXPECT_EQ(ranks_of(spec, trials[6].settings, config), 2) << "as pp and dp require";
}

TEST(StudySpec, RanksAreAnAxisAndLayoutsAndListsAreValues) {
  const StudySpec spec = spec_of(R"(
[set]
run.steps = 3
[grid]
ranks = [1, 4]
optimizer.betas = [[0.9, 0.95], [0.8, 0.99]]
)");
  ASSERT_EQ(trials_of(spec).size(), 4u);
  const Trial last = trials_of(spec).back();
  const RunConfig config = config_of(spec, last.settings);
  EXPECT_EQ(ranks_of(spec, last.settings, config), 4);
  EXPECT_EQ(config.optimizer.betas, (std::array<double, 2>{0.8, 0.99}));
}

TEST(StudySpec, ALongValueIsOneLineOfText) {
  std::string layout = "[";
  for (int rank = 0; rank < 6; ++rank)
    layout += fmt::format("{}{{stages = [{{rank = {}, units = [0, 5]}}], microbatches = [{}, {}]}}",
                          rank > 0 ? ", " : "", rank, rank, rank + 1);
  layout += "]";
  const StudySpec spec =
      spec_of("[set]\nrun.steps = 3\n[grid]\nparallel.layout = [" + layout + "]\n");
  const Settings settings = trials_of(spec)[0].settings;
  EXPECT_EQ(settings[0].second.find('\n'), std::string::npos) << settings[0].second;
  EXPECT_EQ(config_of(spec, settings).parallel.layout.pipelines.size(), 6u);
}

constexpr const char* kArms = R"(
seeds = [7, 8]
[set]
run.steps = 30
freeze.policy = "none"
[grid]
model.width = [32, 64]
[[arm]]
name = "static"
[[arm]]
name = "short"
"run.steps" = 20
model.from = "runs/first-{seed}"
[[arm]]
name = "frozen"
ranks = 3
[arm.freeze]
policy = "linear"
every = 5
)";

TEST(StudySpec, ArmsAreOneAxisAndHaveKeysOfTheirOwn) {
  const StudySpec spec = spec_of(kArms);
  EXPECT_EQ(axes_of(spec), (std::vector<std::string>{"model.width", "arm", "run.seed"}));
  EXPECT_EQ(values_of(spec, "arm"),
            (std::vector<std::string>{"static", "short", "frozen", "static", "short", "frozen",
                                      "static", "short", "frozen", "static", "short", "frozen"}));
  EXPECT_EQ(values_of(spec, "run.seed")[5], "7") << "all arms of a seed come one after another";
  const std::vector<Trial> trials = trials_of(spec);
  const auto config = [&](std::size_t trial) { return config_of(spec, trials[trial].settings); };
  EXPECT_EQ(config(0).run.steps, 30);
  EXPECT_EQ(config(0).freeze.policy, "none");
  EXPECT_EQ(config(1).run.steps, 20) << "replaces that of [set]";
  EXPECT_EQ(config(1).model.from, "runs/first-7");
  EXPECT_EQ(config(7).model.from, "runs/first-8");
  EXPECT_EQ(config(11).freeze.policy, "linear");
  EXPECT_EQ(config(11).model.width, 64);
  EXPECT_EQ(ranks_of(spec, trials[11].settings, config(11)), 3);
}

TEST(StudySpec, AStudyThatGrowsKeepsTheNumbersOfItsTrials) {
  const std::string one = "[[arm]]\nname = 'a'\n[[arm]]\nname = 'b'\n",
                    two = one + "[[arm]]\nname = 'c'\nrun.steps = 7\n",
                    set = "[set]\nrun.steps = 9\n";
  const auto grown = [&](const StudySpec& before, const std::string& text) {
    const StudySpec now = grown_from(before, spec_of(text));
    EXPECT_EQ(study_difference(before, now), "");
    const StudySpec read = spec_of(text + grown_text(now));  // as stored in the study's folder
    const auto settings = [](const StudySpec& spec) {
      std::vector<Settings> all;
      for (const Trial& trial : trials_of(spec)) all.push_back(trial.settings);
      return all;
    };
    EXPECT_EQ(settings(read), settings(now));
    return read;
  };
  const StudySpec first = spec_of("seeds = [1, 2]\n" + set + one);
  const StudySpec same = grown(first, "seeds = [1, 2]\n" + set + one);
  EXPECT_TRUE(same.grown.empty());
  const StudySpec more = grown(first, "seeds = [1, 2]\n" + set + two);
  EXPECT_EQ(values_of(more, "arm"), (std::vector<std::string>{"a", "b", "a", "b", "c", "c"}));
  EXPECT_EQ(values_of(more, "run.seed"), (std::vector<std::string>{"1", "1", "2", "2", "1", "2"}));
  const StudySpec last = grown(more, "seeds = [1, 2, 3]\n" + set + two);
  EXPECT_EQ(values_of(last, "arm"),
            (std::vector<std::string>{"a", "b", "a", "b", "c", "c", "a", "b", "c"}));
  EXPECT_TRUE(grown(last, "seeds = [1, 2, 3]\n" + set + two).grown == last.grown);
  const auto difference = [&](const StudySpec& before, const std::string& text) {
    return study_difference(before, grown_from(before, spec_of(text)));
  };
  EXPECT_EQ(difference(first, "seeds = [1, 2]\n" + set + "[[arm]]\nname = 'c'\n" + one),
            "[grid], [[zip]] or [[arm]] differs")
      << "before the others, not after them";
  EXPECT_EQ(difference(more, "seeds = [1, 2]\n" + set + one), "[grid], [[zip]] or [[arm]] differs");
  std::string other = two;
  other.replace(other.find("= 7"), 3, "= 6");
  EXPECT_EQ(difference(more, "seeds = [1, 2]\n" + set + other),
            "[grid], [[zip]] or [[arm]] differs");
}

TEST(StudySpec, DrawsAreSeededAndWithinTheirRange) {
  const std::string text = R"(
[set]
run.steps = 3
[random]
trials = 400
seed = %
optimizer.lr = {log_uniform = [1e-4, 1e-2]}
model.dropout = {uniform = [0.0, 0.5]}
model.layers = {uniform = [2, 4]}
parallel.schedule = {choice = ["1f1b", "zb-v"]}
)";
  const auto seeded = [&](const char* seed) {
    std::string own = text;
    return spec_of(own.replace(own.find('%'), 1, seed));
  };
  const StudySpec spec = seeded("1");
  EXPECT_EQ(values_of(spec, "optimizer.lr"), values_of(seeded("1"), "optimizer.lr"));
  EXPECT_NE(values_of(spec, "optimizer.lr"), values_of(seeded("2"), "optimizer.lr"));
  const std::vector<std::string> rates = values_of(spec, "optimizer.lr");
  EXPECT_EQ(std::set(rates.begin(), rates.end()).size(), 400U) << "equal draws are no replicas";
  double logs = 0;
  for (const std::string& value : rates) {
    EXPECT_GE(std::stod(value), 1e-4);
    EXPECT_LE(std::stod(value), 1e-2);
    logs += std::log10(std::stod(value));
  }
  EXPECT_NEAR(logs / 400, -3, 0.12) << "the mean of log10 of a log-uniform value";
  const std::vector<std::string> layers = values_of(spec, "model.layers");
  EXPECT_EQ(std::set<std::string>(layers.begin(), layers.end()),
            (std::set<std::string>{"2", "3", "4"}));
  EXPECT_GT(std::ranges::count(layers, "4"), 100) << "the ends are as likely as the rest";
  EXPECT_GT(std::ranges::count(values_of(spec, "parallel.schedule"), "zb-v"), 150);
}

// Where, what, what would be right, and the file's text.
constexpr const char* kRefused = R"(
s.toml:2:15 | unknown key model.widht | model.width ( | [grid]\nmodel.widht = [1]
s.toml:2 | unknown key modle |  | [grid]\nmodle.width = [1]
s.toml:1: | unknown key gird | grid ( | [gird]\na = 1
s.toml:2:15 | no values |  | [grid]\nmodel.width = []
s.toml:2:15 | not a list |  | [grid]\nmodel.width = 3
s.toml:2:20: model.width | model.width has the wrong type: string "x" | an integer from 1 to 1048576
   | [grid]\nmodel.width = [64, 'x']
s.toml:2:20 | out of range |  | [grid]\nmodel.width = [64, 0]
s.toml:2:22 | is not a valid value |  | [grid]\nparallel.schedule = ['zbv']
s.toml:2:15 | listed twice |  | [grid]\nmodel.width = [64, 64]
s.toml:3 | has two axes |  | seeds = [1]\n[grid]\nrun.seed = [1]
s.toml | also an axis |  | [set]\nmodel.width = 64\n[grid]\nmodel.width = [64, 32]
s.toml:3:15 | model.heads has 1 values |  | [[zip]]\nmodel.width = [64, 32]\nmodel.heads = [1]
s.toml:1 | an arm has no name |  | [[arm]]\nrun.steps = 3
s.toml:4:8 | the arm 'a' is listed twice |  | [[arm]]\nname = 'a'\n[[arm]]\nname = 'a'
s.toml:3 | model.width is in an arm and is also an axis |  | [[arm]]\nname = 'a'\nmodel.width =
   64\n[grid]\nmodel.width = [64, 32]
s.toml:3 | unknown key model.widht |  | [[arm]]\nname = 'a'\nmodel.widht = 64
s.toml:1 | arm |  | [arm]\nname = 'a'
s.toml:1 | requires a metric and a margin |  | [equivalence]\nmetric = 'validation_loss'
s.toml:1 | the baseline 'static' is not COLUMN=VALUE |  | [equivalence]\nmetric =
   'validation_loss'\nmargin = 0.1\nbaseline = 'static'
s.toml:4 | equivalence.alpha = 0.5 is out of range |  | [equivalence]\nmetric =
   'validation_loss'\nmargin = 0.1\nalpha = 0.5
s.toml | the study has no seeds |  | [set]\nmodel.from = 'runs/{seed}'
grown.from | [0, 2] is not part of this study |  | seeds = [1]\n[set]\nrun.steps = 9\n[grown]\nfrom =
   [[0, 2]]
s.toml | is set by the study |  | [set]\nrun.steps = 9\n[grid]\nrun.dir = ['a', 'b']
s.toml | is set by the study |  | [set]\nrun.name = 'a'
s.toml:1:8 | cannot read |  | base = 'nowhere.toml'
s.toml | has no base config |  | name = 'a'
s.toml:3 | 'normal' |  | [random]\ntrials = 2\noptimizer.lr = {normal = [0, 1]}
s.toml:3 | not a range |  | [random]\ntrials = 2\noptimizer.lr = {log_uniform = [0, 1]}
s.toml:1 | number of trials |  | [random]\noptimizer.lr = {uniform = [0.1, 1.0]}
s.toml:3:34 | out of range |  | [random]\ntrials = 2\nmodel.dropout = {uniform = [0.1, 3.0]}
s.toml | 199998 trials |  | [set]\nrun.steps = 9\n[random]\ntrials = 99999\noptimizer.lr = {uniform
   = [0.1, 1.0]}\n[grid]\nmodel.width = [64, 32]
s.toml:3 | lowest rung |  | [set]\nrun.steps = 9\n[search]\nmethod = 'asha'\nmetric = 'loss'
s.toml:3 | requires a metric |  | [set]\nrun.steps = 9\n[search]\nmethod = 'asha'\nmin_steps = 3
s.toml:2:17: model.layers | model.layers has the wrong type: boolean true |  | [grid]\nmodel.layers
   = [true]
s.toml:2:16 | wrong type: string "64" |  | [grid]\nmodel.width = ['64']
s.toml:2:16 | wrong type: array |  | [grid]\nmodel.width = [[64, 32]]
s.toml:2:22 | optimizer.lr = nan is out of range |  | [grid]\noptimizer.lr = [0.1, nan]
s.toml:3:33 | optimizer.lr = inf is out of range |  | [random]\ntrials = 2\noptimizer.lr = {uniform
   = [0.1, inf]}
s.toml:3:31 | not a range to draw from |  | [random]\ntrials = 2\noptimizer.lr = {log_uniform = [1e-2,
   1e-4]}
s.toml:3 | expected one distribution for optimizer.lr, got 2 |  | [random]\ntrials = 2\noptimizer.lr = {uniform = [1.0, 2.0], choice =
   [1.0]}
s.toml:1:13 | run.seed has the wrong type |  | seeds = [1, 2.5]
s.toml:1:10 | run.seed = -1 is out of range |  | seeds = [-1]
s.toml:1 | a seed is listed twice |  | seeds = [1, 1]
s.toml:2:21 | missing key parallel.layout.microbatches |  | [grid]\nparallel.layout
   = [[{stages = 1}]]
s.toml:5:10: search.factor | search.factor = 1 is out of range |  | [set]\nrun.steps =
   9\n[search]\nmethod = 'asha'\nfactor = 1
s.toml | the lowest rung of asha is not below run.steps = 9 |  | [set]\nrun.steps = 9\n[search]\nmethod =
   'asha'\nmetric = 'loss'\nmin_steps = 10
s.toml | the sampler chooses what varies |  | seeds = [1, 2]\n[set]\nrun.steps = 9\n[search]\nmethod =
   'sampler'\nmetric = 'loss'
s.toml:3 | search.trials has no effect: method = "all" |  | [set]\nrun.steps = 9\n[search]\ntrials =
   3
s.toml:4:1: search.metirc | unknown key search.metirc |  | [set]\nrun.steps = 9\n[search]\nmetirc =
   'loss'
s.toml:4:10: stop.metric | stop.metric = "lost" is unknown |  | [set]\nrun.steps = 9\n[stop]\nmetric
   = 'lost'\nabove = 1.0
s.toml:3 | each trial would stop at once |  | [set]\nrun.steps = 9\n[stop]\nmetric = 'loss'\nabove =
   1.0\nbelow = 2.0
s.toml | applies after 9 steps, but a trial has 9 |  | [set]\nrun.steps = 9\n[stop]\nmetric =
   'loss'\nabove = 1.0\nafter = 9
s.toml | not evaluated before the end of a trial |  | [set]\nrun.steps = 9\n[stop]\nmetric =
   'validation_loss'\npatience = 2
s.toml:3:9: stop.above | stop.above = nan is out of range |  | [stop]\nmetric = 'loss'\nabove = nan
s.toml:3 | has no condition |  | [set]\nrun.steps = 9\n[stop]\nmetric = 'loss'
s.toml:2:11: launch.command | no place |  | [launch]\ncommand = 'mpirun'
s.toml:2:11 | the command is empty |  | [launch]\ncommand = ''
s.toml:2:14 | time_limit |  | [launch]\ntime_limit = -1
s.toml:1 | not valid TOML |  | [grid\n
s.toml:2 | unknown key search.metirc | metric ( | [search]\nmetirc = 'loss'
s.toml:2 | unknown key rank | ranks | [grid]\nrank = [1]
)";

TEST(StudySpec, RefusalsSayWhatAndWhere) {
  expect_refusals(kRefused, spec_of);
}

TEST(StudyOverrides, SweepsOfHydraAreAxes) {
  const auto spec = [](const std::vector<std::string>& sets) {
    return spec_of(
        "seeds = [9]\n[set]\noptimizer.lr = 0.5\nrun.steps = 9\n[grid]\n"
        "model.width = [64]\n" +
        overrides_text(sets));
  };
  const StudySpec swept =
      spec({"parallel.schedule=zb-v,1f1b", "run.steps=3", "optimizer.lr=choice(1e-3,0.003)",
            "run.seed=range(1,4)", "optimizer.betas=[0.9,0.99],[0.8,0.9]", "ranks=1,2"});
  EXPECT_EQ(swept.seeds, (std::vector<std::int64_t>{1, 2, 3}));
  EXPECT_EQ(axes_of(swept),
            (std::vector<std::string>{"model.width", "parallel.schedule", "optimizer.lr",
                                      "optimizer.betas", "ranks", "run.seed"}));
  const std::vector<Trial> trials = trials_of(swept);
  ASSERT_EQ(trials.size(), 2u * 2 * 2 * 2 * 3);
  const RunConfig last = config_of(swept, trials.back().settings);
  EXPECT_EQ(last.optimizer.lr, 0.003);
  EXPECT_EQ(last.run.steps, 3);
  EXPECT_EQ(last.optimizer.betas[0], 0.8);
  EXPECT_EQ(values_of(spec({"lr.min=range(0.1,0.4,0.1)"}), "lr.min"),
            (std::vector<std::string>{"0.1", "0.2", "0.3"}));
  EXPECT_EQ(values_of(spec({"generate.prompt=\"a,b\",c"}), "generate.prompt"),
            (std::vector<std::string>{"a,b", "c"}));
  EXPECT_EQ(values_of(spec({"run.seed=range(1, 6, 2)"}), "run.seed"),
            (std::vector<std::string>{"1", "3", "5"}));
  EXPECT_EQ(config_of(spec({"data.text=old(1)"}), {}).data.text,
            std::vector<std::string>{"old(1)"});
  EXPECT_EQ(overrides_text({}), "");
  EXPECT_EQ(input_error([] {
              spec_of("[grid]\nrun.seed = [1, 2]\n" + overrides_text({"run.seed=3,4"}));
            }).message(),
            "run.seed has two axes");

  const auto refusal = [&](const char* set) { return input_error([&] { spec({set}); }).message(); };
  EXPECT_EQ(refusal("lr.min=interval(0,1)"), "interval() is not supported in lr.min=interval(0,1)");
  EXPECT_EQ(refusal("~lr.min"), "'~lr.min' does not set a key");
  EXPECT_EQ(refusal("run.seed=range(4,1)"), "range(4,1) has -3 values");
  EXPECT_EQ(refusal("run.seed=range(1,x)"), "range(1,x) has limits that are not numbers");
  EXPECT_EQ(refusal("lr.min=0.1,0.1"), "the value 0.1 is listed twice");
  EXPECT_EQ(refusal("model.width=32,64"), "model.width has two axes");
  EXPECT_FALSE(refusal("lr.min=0.1,two").empty());
}

TEST(StudySpec, IsAnotherStudyWhereTrialsDiffer) {
  const std::string text = "[set]\nrun.steps = 9\n[grid]\nmodel.width = [64, 32]\n";
  const StudySpec spec = spec_of(text), seeded = spec_of("seeds = [1, 2]\n" + text);
  EXPECT_EQ(study_difference(
                spec, spec_of("# a comment\nname = \"b\"\n" + text + "[launch]\njobs = 2\n")),
            "");
  EXPECT_EQ(study_difference(spec, seeded), "seeds differ") << "no longer the config's seed";
  EXPECT_EQ(
      study_difference(spec, spec_of("[set]\nrun.steps = 9\n[grid]\nmodel.width = [32, 64]\n")),
      "[grid], [[zip]] or [[arm]] differs");
  EXPECT_EQ(study_difference(spec, spec_of(text + "[stop]\nmetric = \"loss\"\nabove = 9.0\n")),
            "[stop] differs");
  const std::string claim =
      "[equivalence]\nmetric = 'loss'\nbaseline = 'model.width=64'\nmargin = 0.";
  EXPECT_EQ(spec_of(text + claim + "1\n").claim.value(),
            (EquivalenceClaim{"loss", 0.1, 0.05, {"model.width=64"}}));
  EXPECT_NE(study_difference(spec_of(text + claim + "1\n"), spec_of(text + claim + "2\n"))
                .find("[equivalence] differs"),
            std::string::npos)
      << "a margin cannot be changed later";
  EXPECT_EQ(study_difference(seeded, spec_of("seeds = [1, 2, 5]\n" + text)), "") << "more of it";
  EXPECT_EQ(
      study_difference(spec, spec_of("[set]\nrun.steps = 9\n[grid]\nmodel.width = [64, 32, 96]\n")),
      "");
  EXPECT_EQ(study_difference(seeded, spec_of("seeds = [1]\n" + text)), "seeds differ")
      << "trials would be lost";
  EXPECT_EQ(study_difference(seeded, spec_of("seeds = [2, 1]\n" + text)), "seeds differ");
}

}  // namespace
}  // namespace concertina
