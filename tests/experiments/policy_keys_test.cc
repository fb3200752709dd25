// Keys of freezing, caching and elastic layouts: their effect, and which of them are unused.
#include <gtest/gtest.h>

#include "experiments/adopt/idle_policies.h"
#include "experiments/cache/cache_room.h"
#include "experiments/config/config_overrides.h"
#include "tests/experiments/config_text.h"

namespace concertina {
namespace {

TEST(FreezeKeys, BecomeTheRulesOfAModel) {
  const RunConfig config = load_config(
      {}, {"freeze.policy=pipetransformer", "freeze.alpha=0.25", "freeze.rounding=floor",
           "freeze.unfreeze=loss", "freeze.unfreeze_rise=0.3", "run.steps=70", "lr.warmup=7"});
  EXPECT_EQ(config.where("freeze.alpha"), "command line: freeze.alpha");
  const FreezeRules rules = freeze_rules(config, spec_of_layers(4));
  EXPECT_EQ(rules.layers, 4);
  EXPECT_EQ(rules.most, 4);
  EXPECT_EQ(rules.steps, 70);
  EXPECT_EQ(rules.unfreeze, Unfreeze::loss);
  EXPECT_EQ(rules.rise, 0.3);
  FreezeRecord now{.step = 6};
  now.grad_norm = {4, 3, 2, 1};
  EXPECT_EQ(decide(rules, {}, now).frozen, 0);
  expect_has(decide(rules, {}, now).reason, "waiting for the end of the warm-up, step 7");
  now.step = 7;
  EXPECT_EQ(decide(rules, {}, now).frozen, 1);  // a quarter of 4
  for (const auto& [bound, most] : {std::pair{"freeze.max=3", 3}, {"freeze.max=4", 4}})
    EXPECT_EQ(
        freeze_rules(load_config({}, {"freeze.policy=linear", bound}), spec_of_layers(4)).most,
        most);
}

TEST(FreezeKeys, NoLayerFreezesInTheWarmUpUnlessThatIsAsked) {
  const auto after = [](std::vector<std::string> sets) {
    return freeze_rules(load_config({}, sets), spec_of_layers(4)).after;
  };
  EXPECT_EQ(after({"freeze.policy=linear"}), 20);
  EXPECT_EQ(after({"freeze.policy=linear", "lr.schedule=one-cycle", "run.steps=90"}), 27);
  EXPECT_EQ(after({"freeze.policy=linear", "freeze.after=0"}), 0);
  EXPECT_EQ(after({"freeze.policy=weights-only"}), 0);
  const std::string list = "freeze.policy=list", at = "freeze.at=[\"step 8: 2\"]";
  EXPECT_EQ(after({list, at}), 0);
  EXPECT_EQ(after({list, at, "freeze.after=30"}), 30);
  const FreezePoints points{.steps = 60, .every = 4, .epochs = 0, .steps_per_epoch = 57};
  const auto early = [&](std::vector<std::string> sets) {
    return early_freezing(freeze_rules(load_config({}, sets), spec_of_layers(4)), points, 20);
  };
  expect_has(early({list, at}), "freezes a layer after step 8, before learning-rate warm-up");
  EXPECT_EQ(early({list, at, "freeze.after=20"}), "");
  EXPECT_EQ(early({"freeze.policy=linear", "freeze.after=0"}), "");
}

TEST(FreezeKeys, NeedAModelWithLayers) {
  EXPECT_EQ(freeze_rules(RunConfig(), ModelSpec{}).most, 0);
  expect_has(
      input_error([] { freeze_rules(with_set("freeze.policy=linear"), ModelSpec{}); }).message(),
      "has no layers");
}

TEST(FreezeKeys, OfOtherPoliciesAreNotWritten) {
  const std::string none = write_config(RunConfig()),
                    linear = write_config(with_set("freeze.policy=linear"));
  for (const std::string& text : {none, linear}) {
    const std::size_t begin = text.find("[freeze]");
    EXPECT_EQ(text.substr(begin, text.find("\n[", begin) - begin).find("alpha"), std::string::npos);
  }
  expect_has(linear, "\nstart = 0.1\nend = 0.6\n");
  // A base config may set a policy's options even if another file disables the policy.
  expect_has(write_config(load_config({}, {"freeze.policy=none", "freeze.alpha=0.25"})),
             "\nalpha = 0.25\n");
}

std::string idle(std::vector<std::string> sets, const FreezePoints& points) {
  sets.push_back(fmt::format("run.steps={}", points.steps));
  return idle_freezing(freeze_rules(load_config({}, sets), spec_of_layers(4)), points);
}

TEST(IdlePolicies, AreNamedWhereNoDecisionComesBeforeTheEnd) {
  const FreezePoints epochs{.steps = 30, .every = 0, .epochs = 0, .steps_per_epoch = 57},
      pace{.steps = 30, .every = 100, .epochs = 0, .steps_per_epoch = 57},
      last{.steps = 30, .every = 30, .epochs = 0, .steps_per_epoch = 57};
  for (const char* policy : {"linear", "pipetransformer", "autofreeze", "plasticity"}) {
    const std::string set = fmt::format("freeze.policy={}", policy);
    const std::string text = idle({set}, epochs);
    expect_has(text, "nothing will ever be frozen: freeze.policy = ");
    expect_has(text, "decides after each epoch of 57 steps, but the run has only 30 steps");
    expect_has(text, "set freeze.every");
    expect_has(idle({set}, pace), "decides every 100 steps, but the run has only 30 steps");
    expect_has(idle({set}, last), "decides every 30 steps, but the run has only 30 steps");
  }
  expect_has(idle({"freeze.policy=weights-only"}, epochs),
             "no weight gradient will ever be skipped");
  EXPECT_EQ(idle({"freeze.policy=none"}, epochs), "");
}

TEST(IdlePolicies, AreNamedWhereNoDecisionFreezes) {
  const FreezePoints points{.steps = 30, .every = 5, .epochs = 0, .steps_per_epoch = 57};
  expect_has(idle({"freeze.policy=pipetransformer", "freeze.alpha=0"}, points),
             "decides every 5 steps, 5 times before the run ends, and no decision freezes a layer");
  expect_has(idle({"freeze.policy=linear", "freeze.start=0.99", "freeze.end=1"}, points),
             "nothing will ever be frozen");
  expect_has(idle({"freeze.policy=linear", "lr.warmup=30"}, points),
             "waiting for the end of the warm-up");
  for (const char* policy :
       {"linear", "pipetransformer", "autofreeze", "plasticity", "weights-only"})
    EXPECT_EQ(idle({fmt::format("freeze.policy={}", policy)}, points), "") << policy;
  const FreezePoints endless{
      .steps = std::int64_t{1} << 40, .every = 1, .epochs = 9, .steps_per_epoch = 57};
  EXPECT_EQ(idle({"freeze.policy=linear", "freeze.start=0.5"}, endless), "");
  expect_has(idle({"freeze.policy=list", "freeze.at=[\"epoch 10: 2\"]"}, endless),
             "\"epoch 10: 2\"");
}

TEST(ForeseenFreezes, FollowStepsAndEpochs) {
  const auto foreseen = [](std::vector<std::string> sets) {
    sets.push_back("run.steps=30");
    std::string text;
    const FreezePoints points{.steps = 30, .every = 10, .epochs = 2, .steps_per_epoch = 12};
    for (const auto& [step, layers] :
         foreseen_freezes(freeze_rules(load_config({}, sets), spec_of_layers(4)), points))
      text += fmt::format("{}: {}, ", step, layers);
    return text;
  };
  const char *list = "freeze.policy=list", *rows = "freeze.at=[\"step 5: 1\", \"step 11: 2\"]";
  EXPECT_EQ(foreseen({list, rows}), "10: 1, 20: 2, ");
  EXPECT_EQ(foreseen({list, "freeze.at=[\"epoch 1: 2\"]"}), "20: 2, ");
  EXPECT_EQ(foreseen({list, rows, "freeze.unfreeze=loss"}), "");
  EXPECT_EQ(foreseen({"freeze.policy=autofreeze"}), "");
  EXPECT_EQ(foreseen({"freeze.policy=none"}), "");
}

TEST(IdlePolicies, NameTheRowsThatNoDecisionReaches) {
  const FreezePoints points{.steps = 30, .every = 10, .epochs = 2, .steps_per_epoch = 12};
  const auto list = [&](const char* rows) {
    return idle({"freeze.policy=list", fmt::format("freeze.at={}", rows)}, points);
  };
  EXPECT_EQ(list("[\"step 5: 1\", \"step 20: 2\"]"), "");
  EXPECT_EQ(list("[\"epoch 1: 1\"]"), "");
  const std::string some = list("[\"step 5: 1\", \"step 21: 2\", \"step 99: 3\"]");
  expect_has(some, "\"step 21: 2\", \"step 99: 3\" of freeze.at will never be reached");
  expect_has(some, "after step 20 (epochs done: 1)");
  EXPECT_EQ(some.find("nothing"), std::string::npos) << some;
  const std::string all = list("[\"epoch 2: 1\"]");
  expect_has(all, "nothing will ever be frozen");
  expect_has(all, "\"epoch 2: 1\" of freeze.at will never be reached");
}

TEST(IdlePolicies, NameALayoutPolicyThatNeverDecides) {
  const auto idle_layouts = [](std::vector<std::string> sets, bool freezes) {
    sets.push_back("run.steps=30");
    return idle_repartition(load_config({}, sets), freezes);
  };
  expect_has(idle_layouts({"elastic.policy=predicted"}, false),
             "elastic.policy = \"predicted\" will never decide: nothing freezes");
  expect_has(idle_layouts({"elastic.policy=predicted", "elastic.every=30"}, false),
             "elastic.every = 30 of 30 steps");
  EXPECT_EQ(idle_layouts({"elastic.policy=predicted", "elastic.every=29"}, false), "");
  EXPECT_EQ(idle_layouts({"elastic.policy=predicted"}, true), "");
  EXPECT_EQ(idle_layouts({}, false), "");
}

TEST(CacheUse, NamesWhatCouldNotBeKept) {
  expect_has(text_of(CacheUse{.faults = 1}), "none could be stored (1 fault: see the warnings)");
  expect_has(text_of(CacheUse{}), "none requested");
  const CacheUse part{.memory_hits = 170, .misses = 830, .samples = 1000, .slots = 500};
  expect_has(text_of(part),
             "17% of 1,000 samples with frozen units were read (170 from memory, 0 from disk), 0 "
             "written; 830 were computed, each sample at least once: the budgets hold 500 of the "
             "1,000 samples of an epoch");
}

TEST(CacheRoom, SaysWhatASlotTakesInAll) {
  const RunConfig config =
      load_config({}, {"freeze.units=5", "cache.memory=1KiB", "data.windows=fixed"});
  ModelSpec model;
  model.samples = 1;
  model.boundary_bytes = 1024;
  const Error error = input_error([&] { cache_room(config, model, 9); });
  expect_has(
      error.message(),
      "takes 1024 bytes, and the smallest cache file with its headers and whole pages needs 8 KiB");
  expect_has(error.fix(), "8 KiB");
}

TEST(IdleKeys, OfABaseConfigThatSaysNoneAreTaken) {
  const RunConfig said = load_config(
      {}, {"elastic.policy=none", "elastic.every=5", "cache.disk=0", "cache.dir=/tmp",
           "freeze.policy=linear", "freeze.unfreeze=never", "freeze.unfreeze_rise=0.3"});
  EXPECT_EQ(parse(write_config(said)), said);
  load_config({}, {"freeze.policy=none", "freeze.unfreeze=loss", "freeze.unfreeze_rise=0.3"});
  EXPECT_EQ(parse(write_config(RunConfig())), RunConfig());
  load_config({}, {"elastic.policy=pipetransformer", "elastic.every=5", "elastic.batch=grows"});
}

TEST(LayoutKeys, ReplaceTheShapeAndNothingElse) {
  const RunConfig config = with_set("parallel.pp=2");
  const auto with = [&](const char* keys) { return with_layout_keys(config, keys, "--to"); };
  const RunConfig wide = with("parallel.dp=2 parallel.schedule=gpipe");
  EXPECT_EQ(wide.parallel.pp, 0) << "as if no file had set it";
  EXPECT_EQ(wide.parallel.dp, 2);
  EXPECT_EQ(wide.parallel.schedule, "gpipe");
  EXPECT_EQ(with("parallel.schedule=gpipe").parallel.pp, 2);
  const RunConfig uneven = with(
      "parallel.layout=[{stages = [{rank = 0, units = [0, 10]}], microbatches = [0, 8]}] "
      "freeze.units=1");
  EXPECT_EQ(uneven.parallel.layout.pipelines.size(), 1U);
  EXPECT_EQ(uneven.freeze.units, 1);
  for (const char* bad : {"", "pp=1", "model.layers=3", "parallel.transport=mpi", "x parallel.pp=1",
                          "parallel.pp=-1"})
    EXPECT_THROW(with(bad), Error) << bad;
}

}  // namespace
}  // namespace concertina
