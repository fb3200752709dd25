// Study files: what they may say, which trials follow, and one clear error for what they may not.
#include "experiments/study/study_spec.h"

#include <fmt/format.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/error.h"

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
  EXPECT_EQ(ranks_of(spec, trials[6].settings, config), 2) << "as pp and dp ask for";
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
  EXPECT_EQ(config(1).run.steps, 20) << "in place of that of [set]";
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
    const StudySpec read = spec_of(text + grown_text(now));  // as the study's folder has it
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

TEST(StudySpec, ErrorsNameTheNearestKey) {
  const auto fix_of = [](const std::string& toml) {
    try {
      spec_of(toml);
      return std::string("accepted");
    } catch (const Error& error) {
      return error.fix();
    }
  };
  EXPECT_EQ(fix_of("[gird]\na = 1").substr(0, 6), "grid (");
  EXPECT_EQ(fix_of("[search]\nmetirc = 'loss'").substr(0, 8), "metric (");
  EXPECT_EQ(fix_of("[grid]\nmodel.widht = [1]").substr(0, 13), "model.width (");
  EXPECT_EQ(fix_of("[grid]\nrank = [1]"), "ranks");
  EXPECT_EQ(fix_of("[grid]\nmodel.width = [64, 'x']"), "an integer from 1 to 1048576");
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
  double logs = 0;
  for (const std::string& value : values_of(spec, "optimizer.lr")) {
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

struct Refused {
  const char *name, *toml, *what, *where;
};

class StudyRefusals : public testing::TestWithParam<Refused> {};

TEST_P(StudyRefusals, SayWhatAndWhere) {
  try {
    spec_of(GetParam().toml);
    FAIL() << "accepted";
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::bad_input);
    EXPECT_NE(error.message().find(GetParam().what), std::string::npos) << error.message();
    EXPECT_NE(error.where().find(GetParam().where), std::string::npos) << error.where();
    EXPECT_FALSE(error.fix().empty());
  }
}

INSTANTIATE_TEST_SUITE_P(
    All, StudyRefusals,
    testing::Values(
        Refused{"key", "[grid]\nmodel.widht = [1]", "unknown key model.widht", "s.toml:2:15"},
        Refused{"table", "[grid]\nmodle.width = [1]", "unknown key modle", "s.toml:2"},
        Refused{"section", "[gird]\na = 1", "unknown key gird", "s.toml:1:"},
        Refused{"empty", "[grid]\nmodel.width = []", "no values", "s.toml:2:15"},
        Refused{"scalar", "[grid]\nmodel.width = 3", "no list", "s.toml:2:15"},
        Refused{"value", "[grid]\nmodel.width = [64, 'x']",
                "model.width has the wrong type: string \"x\"", "s.toml:2:20: model.width"},
        Refused{"range", "[grid]\nmodel.width = [64, 0]", "out of range", "s.toml:2:20"},
        Refused{"name", "[grid]\nparallel.schedule = ['zbv']", "is unknown", "s.toml:2:22"},
        Refused{"twice", "[grid]\nmodel.width = [64, 64]", "there twice", "s.toml:2:15"},
        Refused{"varies", "seeds = [1]\n[grid]\nrun.seed = [1]", "varies twice", "s.toml:3"},
        Refused{"set", "[set]\nmodel.width = 64\n[grid]\nmodel.width = [64, 32]", "as well",
                "s.toml"},
        Refused{"zip", "[[zip]]\nmodel.width = [64, 32]\nmodel.heads = [1]",
                "model.heads has 1 values", "s.toml:3:15"},
        Refused{"arm without a name", "[[arm]]\nrun.steps = 3", "an arm has no name", "s.toml:1"},
        Refused{"arm twice", "[[arm]]\nname = 'a'\n[[arm]]\nname = 'a'",
                "the arm 'a' is there twice", "s.toml:4:8"},
        Refused{"arm and grid",
                "[[arm]]\nname = 'a'\nmodel.width = 64\n[grid]\nmodel.width = [64, 32]",
                "model.width is in an arm and varies as well", "s.toml:3"},
        Refused{"arm key", "[[arm]]\nname = 'a'\nmodel.widht = 64", "unknown key model.widht",
                "s.toml:3"},
        Refused{"arm table", "[arm]\nname = 'a'", "arm", "s.toml:1"},
        Refused{"claim", "[equivalence]\nmetric = 'validation_loss'", "no metric or no margin",
                "s.toml:1"},
        Refused{"claim baseline",
                "[equivalence]\nmetric = 'validation_loss'\nmargin = 0.1\nbaseline = 'static'",
                "the baseline 'static' is not COLUMN=VALUE", "s.toml:1"},
        Refused{"claim alpha",
                "[equivalence]\nmetric = 'validation_loss'\nmargin = 0.1\nalpha = 0.5",
                "equivalence.alpha = 0.5 is out of range", "s.toml:4"},
        Refused{"no seeds", "[set]\nmodel.from = 'runs/{seed}'", "the study has no seeds",
                "s.toml"},
        Refused{"grown", "seeds = [1]\n[set]\nrun.steps = 9\n[grown]\nfrom = [[0, 2]]",
                "[0, 2] is no part of this study", "grown.from"},
        Refused{"own", "[set]\nrun.steps = 9\n[grid]\nrun.dir = ['a', 'b']", "the study's own",
                "s.toml"},
        Refused{"set own", "[set]\nrun.name = 'a'", "the study's own", "s.toml"},
        Refused{"base", "base = 'nowhere.toml'", "cannot read", "s.toml:1:8"},
        Refused{"nothing", "name = 'a'", "starts from no config", "s.toml"},
        Refused{"draw", "[random]\ntrials = 2\noptimizer.lr = {normal = [0, 1]}", "'normal'",
                "s.toml:3"},
        Refused{"log", "[random]\ntrials = 2\noptimizer.lr = {log_uniform = [0, 1]}", "no range",
                "s.toml:3"},
        Refused{"trials", "[random]\noptimizer.lr = {uniform = [0.1, 1.0]}", "number of trials",
                "s.toml:1"},
        Refused{"end", "[random]\ntrials = 2\nmodel.dropout = {uniform = [0.1, 3.0]}",
                "out of range", "s.toml:3:34"},
        Refused{"many",
                "[set]\nrun.steps = 9\n[random]\ntrials = 99999\noptimizer.lr = {uniform = [0.1, "
                "1.0]}\n[grid]\nmodel.width = [64, 32]",
                "199998 trials", "s.toml"},
        Refused{"asha", "[set]\nrun.steps = 9\n[search]\nmethod = 'asha'\nmetric = 'loss'",
                "lowest rung", "s.toml:3"},
        Refused{"metric", "[set]\nrun.steps = 9\n[search]\nmethod = 'asha'\nmin_steps = 3",
                "no metric", "s.toml:3"},
        Refused{"boolean", "[grid]\nmodel.layers = [true]",
                "model.layers has the wrong type: boolean true", "s.toml:2:17: model.layers"},
        Refused{"quoted number", "[grid]\nmodel.width = ['64']", "wrong type: string \"64\"",
                "s.toml:2:16"},
        Refused{"nested", "[grid]\nmodel.width = [[64, 32]]", "wrong type: array", "s.toml:2:16"},
        Refused{"nan", "[grid]\noptimizer.lr = [0.1, nan]", "optimizer.lr = nan is out of range",
                "s.toml:2:22"},
        Refused{"infinite", "[random]\ntrials = 2\noptimizer.lr = {uniform = [0.1, inf]}",
                "optimizer.lr = inf is out of range", "s.toml:3:33"},
        Refused{"reversed", "[random]\ntrials = 2\noptimizer.lr = {log_uniform = [1e-2, 1e-4]}",
                "no range to draw from", "s.toml:3:31"},
        Refused{"two ways",
                "[random]\ntrials = 2\noptimizer.lr = {uniform = [1.0, 2.0], choice = [1.0]}",
                "2 ways to draw", "s.toml:3"},
        Refused{"float seed", "seeds = [1, 2.5]", "run.seed has the wrong type", "s.toml:1:13"},
        Refused{"negative seed", "seeds = [-1]", "run.seed = -1 is out of range", "s.toml:1:10"},
        Refused{"seed twice", "seeds = [1, 1]", "a seed is there twice", "s.toml:1"},
        Refused{"layout", "[grid]\nparallel.layout = [[{stages = 1}]]",
                "parallel.layout: a pipeline lacks the key 'microbatches'", "s.toml:2:21"},
        Refused{"factor", "[set]\nrun.steps = 9\n[search]\nmethod = 'asha'\nfactor = 1",
                "search.factor = 1 is out of range", "s.toml:5:10: search.factor"},
        Refused{"rung",
                "[set]\nrun.steps = 9\n[search]\nmethod = 'asha'\nmetric = 'loss'\nmin_steps = 10",
                "asha's lowest rung is not below run.steps = 9", "s.toml"},
        Refused{"axes and sampler",
                "seeds = [1, 2]\n[set]\nrun.steps = 9\n[search]\nmethod = 'sampler'\nmetric = "
                "'loss'",
                "the sampler says what varies", "s.toml"},
        Refused{"no effect", "[set]\nrun.steps = 9\n[search]\ntrials = 3",
                "search.trials has no effect: method = \"all\"", "s.toml:3"},
        Refused{"search key", "[set]\nrun.steps = 9\n[search]\nmetirc = 'loss'",
                "unknown key search.metirc", "s.toml:4:1: search.metirc"},
        Refused{"stop metric", "[set]\nrun.steps = 9\n[stop]\nmetric = 'lost'\nabove = 1.0",
                "stop.metric = \"lost\" is unknown", "s.toml:4:10: stop.metric"},
        Refused{"stop at once",
                "[set]\nrun.steps = 9\n[stop]\nmetric = 'loss'\nabove = 1.0\nbelow = 2.0",
                "each trial would end at once", "s.toml:3"},
        Refused{"stop never",
                "[set]\nrun.steps = 9\n[stop]\nmetric = 'loss'\nabove = 1.0\nafter = 9",
                "looks after 9 steps, a trial has 9", "s.toml"},
        Refused{"stop unseen",
                "[set]\nrun.steps = 9\n[stop]\nmetric = 'validation_loss'\npatience = 2",
                "no trial has before its end", "s.toml"},
        Refused{"stop nan", "[stop]\nmetric = 'loss'\nabove = nan",
                "stop.above = nan is out of range", "s.toml:3:9: stop.above"},
        Refused{"stop", "[set]\nrun.steps = 9\n[stop]\nmetric = 'loss'", "does not say when",
                "s.toml:3"},
        Refused{"launch", "[launch]\ncommand = 'mpirun'", "no place",
                "s.toml:2:11: launch.command"},
        Refused{"no launcher", "[launch]\ncommand = ''", "there is no command", "s.toml:2:11"},
        Refused{"limit", "[launch]\ntime_limit = -1", "time_limit", "s.toml:2:14"},
        Refused{"toml", "[grid\n", "not valid TOML", "s.toml:1"}),
    [](const auto& tested) {
      std::string name = tested.param.name;
      std::ranges::replace(name, ' ', '_');
      return name;
    });

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
      << "a margin is not for later";
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
