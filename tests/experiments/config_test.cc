// Config: overlays, errors that say what, where and what would be right, and the round trip.
#include "experiments/config/config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <bit>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <set>

#include "core/error.h"
#include "experiments/adopt/idle_policies.h"
#include "experiments/cache/cache_room.h"
#include "experiments/config/config_environment.h"
#include "experiments/config/config_keys.h"
#include "experiments/config/config_toml.h"

namespace concertina {
namespace {

RunConfig parse(const std::string& toml) {
  RunConfig config;
  read_config(toml, "a.toml", config);
  validate(config);
  return config;
}

RunConfig with_set(const std::string& assignment) {
  RunConfig config;
  set_config(assignment, config);
  validate(config);
  return config;
}

/// The bad-input error that `body` throws; fails the test if it throws none.
template <class Body>
Error input_error(Body body) {
  try {
    body();
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::bad_input);
    return error;
  }
  ADD_FAILURE() << "no error";
  return Error(Exit::ok, "", "", "");
}

void expect_has(const std::string& text, const std::string& part) {
  EXPECT_NE(text.find(part), std::string::npos) << "'" << part << "' is not in: " << text;
}

class TempFile {
 public:
  TempFile(const std::string& name, const std::string& text)
      : path_(std::filesystem::path(testing::TempDir()) / name) {
    std::ofstream(path_) << text;
  }
  ~TempFile() { std::filesystem::remove(path_); }
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

TEST(Config, DefaultsAreValid) {
  const RunConfig config;
  EXPECT_NO_THROW(validate(config));
  for (const Key& key : config_keys()) {
    RunConfig changed;
    EXPECT_NO_THROW(set_config(std::string(key.name) + "=" + value_text(key, config), changed))
        << key.name;
    EXPECT_EQ(changed, config) << key.name;
  }
}

TEST(Config, EveryFieldHasOneKey) {
  std::set<std::string_view> names;
  std::set<const void*> places;
  RunConfig config;
  for (const Key& key : config_keys()) {
    EXPECT_TRUE(names.insert(key.name).second) << key.name << " twice";
    const void* place =
        std::visit([](auto* p) { return static_cast<const void*>(p); }, key.field(config));
    EXPECT_TRUE(places.insert(place).second) << key.name << " shares its field";
    EXPECT_FALSE(key.meaning.empty());
  }
}

TEST(Config, OptionsOfAnEntryThatIsNotChosenAreRefused) {
  const std::vector<std::array<std::string, 4>> cases{
      {"model.llama.kv_heads=2", "model.llama.kv_heads = 2 has no effect: model.family is \"gpt\"",
       "model.family = \"llama\"; \"gpt\" reads model.gpt.hidden, model.gpt.norm_eps, "
       "model.gpt.activation",
       "model.family=llama"},
      {"optimizer.sgd.momentum=0.5",
       "optimizer.sgd.momentum = 0.5 has no effect: optimizer.name is \"adamw\"",
       "optimizer.name = \"sgd\"", "optimizer.name=sgd"},
      {"lr.wsd.decay=0.5", "lr.wsd.decay = 0.5 has no effect: lr.schedule is \"cosine\"",
       "lr.schedule = \"wsd\"", "lr.schedule=wsd"},
      {"data.crop=4", "data.crop = 4 has no effect: data.format is \"text\"",
       "data.format = one of mnist, cifar10, cifar100, cifar100-coarse, webdataset, image-folder; "
       "\"text\" reads data.text, data.windows",
       "data.format=mnist"},
      {"data.stride=9", "data.stride = 9 has no effect: data.format is \"text\"",
       "data.format = \"squad\"; \"text\" reads data.text, data.windows", "data.format=squad"},
      {"data.files=a", "data.files = [\"a\"] has no effect: data.format is \"text\"",
       "data.format = one of tokens, mnist, cifar10, cifar100, cifar100-coarse, tsv, csv, jsonl, "
       "conll, squad, webdataset, image-folder; \"text\" reads data.text, data.windows",
       "data.format=tokens"}};
  for (const auto& [option, message, fix, choice] : cases) {
    try {
      load_config({}, {option});
      ADD_FAILURE() << option;
    } catch (const Error& error) {
      EXPECT_EQ(error.message(), message);
      EXPECT_EQ(error.fix(), fix);
    }
    EXPECT_NO_THROW(load_config({}, {option, choice}));
  }
}

/// An option's table may stand by itself or within its section.
TEST(Config, TablesOfEntriesAreRead) {
  for (const char* toml : {"[model]\nfamily = \"llama\"\n[model.llama]\nkv_heads = 2\n",
                           "[model]\nfamily = \"llama\"\nllama.kv_heads = 2\n",
                           "model = {family = \"llama\", llama = {kv_heads = 2}}\n"}) {
    RunConfig config;
    read_config(toml, "a.toml", config);
    EXPECT_EQ(std::get<std::int64_t>(config.model.options.at("llama").at("kv_heads")), 2) << toml;
    RunConfig again;
    read_config(write_config(config), "b.toml", again);
    EXPECT_TRUE(again == config) << write_config(config);
  }
  RunConfig config;
  try {
    read_config("[model.llama]\nkv_head = 2\n", "a.toml", config);
    ADD_FAILURE();
  } catch (const Error& error) {
    EXPECT_NE(error.where().find("a.toml:2"), std::string::npos) << error.where();
    EXPECT_NE(error.fix().find("model.llama.kv_heads"), std::string::npos) << error.fix();
  }
}

TEST(Config, LaterOverlaysWinAndSetWinsLast) {
  const TempFile base("base.toml", "[model]\nwidth = 64\nlayers = 2\n[batch]\nglobal = 16\n");
  const TempFile over("over.toml", "[model]\nlayers = 3\n[optimizer]\nlr = 1\n");
  const RunConfig config =
      load_config({base.path(), over.path()}, {"model.layers=5", "batch.global=24"});
  EXPECT_EQ(config.model.width, 64);
  EXPECT_EQ(config.model.layers, 5);
  EXPECT_EQ(config.batch.global, 24);
  EXPECT_EQ(config.optimizer.lr, 1.0);  // an integer is a number
  EXPECT_EQ(load_config({over.path(), base.path()}, {}).model.layers, 2);
  EXPECT_EQ(config.where("model.layers"), "--set: model.layers");
  EXPECT_EQ(config.where("model.width"), base.path() + ":2:9: model.width");
  EXPECT_EQ(config.where("model.heads"), "model.heads (default)");
}

TEST(Config, TextNeedsNoQuotesInSet) {
  EXPECT_EQ(with_set("data.text=books/*.txt").data.text, std::vector<std::string>{"books/*.txt"});
  EXPECT_EQ(with_set("data.text=123").data.text, std::vector<std::string>{"123"});
  EXPECT_EQ(with_set("data.text=[\"a\", \"b\"]").data.text, (std::vector<std::string>{"a", "b"}));
  EXPECT_EQ(with_set("run.name=a b").run.name, "a b");
  EXPECT_EQ(with_set("generate.prompt=\"a\\nb\"").generate.prompt, "a\nb");
  EXPECT_EQ(with_set("generate.prompt=x=y").generate.prompt, "x=y");
}

TEST(Config, LayoutIsRead) {
  const RunConfig config = parse(
      "[parallel]\nlayout = [{stages = [{rank = 0, units = [0, 6]}, {rank = 1, units = [6, 10]}], "
      "microbatches = [0, 5]},\n {stages = [{rank = 2, units = [0, 10]}], microbatches = [5, "
      "8]}]\n");
  const Layout expected_layout{{{{{0, 0, 6}, {1, 6, 10}}, 0, 5}, {{{2, 0, 10}}, 5, 8}}};
  EXPECT_EQ(config.parallel.layout, expected_layout);
}

ModelSpec spec_of_layers(int layers) {
  ModelSpec model;
  for (int layer = 0; layer <= layers; ++layer)  // the last one is the head
    model.units.push_back({fmt::format("{}", layer), {{"w", {2, 2}, true, {}, ""}}, {}});
  for (int layer = 1; layer <= layers; ++layer) model.layer_ends.push_back(layer);
  return model;
}

TEST(FreezeKeys, BecomeTheRulesOfAModel) {
  const RunConfig config = load_config(
      {}, {"freeze.policy=pipetransformer", "freeze.alpha=0.25", "freeze.rounding=floor",
           "freeze.unfreeze=loss", "freeze.unfreeze_rise=0.3", "run.steps=70", "lr.warmup=7"});
  EXPECT_EQ(config.where("freeze.alpha"), "--set: freeze.alpha");
  const FreezeRules rules = freeze_rules(config, spec_of_layers(4));
  EXPECT_EQ(rules.layers, 4);
  EXPECT_EQ(rules.most, 4);
  EXPECT_EQ(rules.steps, 70);
  EXPECT_EQ(rules.unfreeze, Unfreeze::loss);
  EXPECT_EQ(rules.rise, 0.3);
  FreezeRecord now{.step = 6};
  now.grad_norm = {4, 3, 2, 1};
  EXPECT_EQ(decide(rules, {}, now).frozen, 0);
  expect_has(decide(rules, {}, now).reason, "waits for the warm-up's end, step 7");
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
  expect_has(early({list, at}), "freezes a layer after step 8, before the warm-up");
  EXPECT_EQ(early({list, at, "freeze.after=20"}), "");
  EXPECT_EQ(early({"freeze.policy=linear", "freeze.after=0"}), "");
}

TEST(FreezeKeys, NeedAModelWithLayers) {
  EXPECT_EQ(freeze_rules(RunConfig(), ModelSpec{}).most, 0);
  expect_has(
      input_error([] { freeze_rules(with_set("freeze.policy=linear"), ModelSpec{}); }).message(),
      "freezes layers");
}

TEST(FreezeKeys, OfOtherPoliciesAreNotWritten) {
  const std::string none = write_config(RunConfig()),
                    linear = write_config(with_set("freeze.policy=linear"));
  EXPECT_EQ(none.find("alpha"), std::string::npos);
  EXPECT_EQ(linear.find("alpha"), std::string::npos);
  expect_has(linear, "\nstart = 0.1\nend = 0.6\n");
  // A base config may have a policy's options while another file chooses no policy.
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
    expect_has(text, "decides at the ends of epochs of 57 steps, and the run has 30 steps");
    expect_has(text, "set freeze.every");
    expect_has(idle({set}, pace), "decides every 100 steps, and the run has 30 steps");
    expect_has(idle({set}, last), "decides every 30 steps, and the run has 30 steps");
  }
  expect_has(idle({"freeze.policy=weights-only"}, epochs), "no weight gradient will ever be left");
  EXPECT_EQ(idle({"freeze.policy=none"}, epochs), "");
}

TEST(IdlePolicies, AreNamedWhereNoDecisionFreezes) {
  const FreezePoints points{.steps = 30, .every = 5, .epochs = 0, .steps_per_epoch = 57};
  expect_has(
      idle({"freeze.policy=pipetransformer", "freeze.alpha=0"}, points),
      "decides every 5 steps, 5 times before the run ends, and none of them freezes a layer");
  expect_has(idle({"freeze.policy=linear", "freeze.start=0.99", "freeze.end=1"}, points),
             "nothing will ever be frozen");
  expect_has(idle({"freeze.policy=linear", "lr.warmup=30"}, points), "waits for the warm-up's end");
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
  expect_has(text_of(CacheUse{.faults = 1}), "none could be kept (1 fault: see the warnings)");
  expect_has(text_of(CacheUse{}), "none was asked for");
  const CacheUse part{.memory_hits = 170, .misses = 830, .samples = 1000, .slots = 500};
  expect_has(text_of(part),
             "17% of 1,000 samples with frozen units were read (170 from memory, 0 from disk), 0 "
             "written; 830 were computed, each sample at least once: the budgets hold 500 of the "
             "1,000 of an epoch");
}

TEST(CacheRoom, SaysWhatASlotTakesInAll) {
  const RunConfig config =
      load_config({}, {"freeze.units=5", "cache.memory=1KiB", "data.windows=fixed"});
  ModelSpec model;
  model.samples = 1;
  model.boundary_bytes = 1024;
  const Error error = input_error([&] { cache_room(config, model, 9); });
  expect_has(error.message(), "has 1024 bytes, and its file takes 8 KiB with its header");
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

struct BadInput {
  const char* toml;
  const char* what;
  const char* where;
  const char* fix;
};

class BadConfig : public testing::TestWithParam<BadInput> {};

TEST_P(BadConfig, SaysWhatWhereAndWhatWouldBeRight) {
  const Error error = input_error([] { parse(GetParam().toml); });
  expect_has(error.message(), GetParam().what);
  expect_has(error.where(), GetParam().where);
  expect_has(error.fix(), GetParam().fix);
}

INSTANTIATE_TEST_SUITE_P(
    , BadConfig,
    testing::Values(
        BadInput{"[batch]\nglobl = 3", "unknown key batch.globl", "a.toml:2:1", "batch.global"},
        BadInput{"[freeze]\nalpa = 0.2", "unknown key freeze.alpa", "a.toml:2:1",
                 "freeze.alpha (keys of [freeze]: units, tensors, tied, policy, every"},
        BadInput{"[freeze]\npolicy = \"pipetransformer\"\nalpha = 2", "out of range", "a.toml:3:9",
                 "from 0 to 1"},
        BadInput{"[freeze]\npolicy = \"pipetransformer\"\nrounding = \"up\"", "\"up\" is unknown",
                 "a.toml:3:12", "ceil, floor"},
        BadInput{"[freeze]\npolicy = \"pipe\"", "\"pipe\" is unknown", "a.toml:2:10",
                 "none, list, linear, pipetransformer"},
        BadInput{"[freeze]\npolicy = \"linear\"\nalpha = 0.25",
                 "freeze.alpha = 0.25 has no effect: freeze.policy is \"linear\"", "a.toml:3:9",
                 "freeze.policy = \"pipetransformer\"; \"linear\" reads freeze.every, "
                 "freeze.after, freeze.max, "
                 "freeze.unfreeze, freeze.start, freeze.end"},
        BadInput{"[freeze]\nunits = 2\nmax = 3",
                 "freeze.max = 3 has no effect: freeze.policy is not set", "a.toml:3:7",
                 "pipetransformer, autofreeze, plasticity; \"none\" if that is meant"},
        BadInput{"[freeze]\nevery = 20", "freeze.every = 20 has no effect", "a.toml:2:9", "linear"},
        BadInput{"[freeze]\nalpha = 0.2", "freeze.alpha = 0.2 has no effect", "a.toml:2:9",
                 "pipetransformer"},
        BadInput{"[freeze]\nunfreeze = \"lr\"", "freeze.unfreeze = \"lr\" has no effect",
                 "a.toml:2:12", "freeze.policy"},
        BadInput{"[freeze]\npolicy = \"linear\"\nunits = 2", "both say what is frozen",
                 "a.toml:3:9", "freeze.units = 0"},
        BadInput{"[freeze]\npolicy = \"linear\"\nstart = 0.7", "not before freeze.end = 0.6",
                 "freeze.end (default)", "above freeze.start"},
        BadInput{"[freeze]\npolicy = \"list\"", "needs a table", "freeze.at (default)",
                 "epoch 2: 7"},
        BadInput{"[freeze]\npolicy = \"list\"\nat = [\"step 99999999999999999999: 3\"]",
                 "\"step 99999999999999999999: 3\", which is no row", "a.toml:3:6", "epoch 2: 7"},
        BadInput{"[freeze]\npolicy = \"list\"\nat = [\"epoch 1: 5\"]", "the model has 4 layers",
                 "a.toml:3:6", "1 to 4 layers"},
        BadInput{"[freeze]\npolicy = \"list\"\nmax = 2\nat = \"epoch 1: 3\"",
                 "at most 2 layers may be frozen", "a.toml:4:6", "at most 2"},
        BadInput{"[freeze]\npolicy = \"linear\"\nmax = 5", "freeze.max = 5, but the model has 4",
                 "a.toml:3:7", "at most 4"},
        BadInput{"[freeze]\npolicy = \"linear\"\nunfreeze_rise = 0.3",
                 "freeze.unfreeze_rise = 0.3 has no effect: freeze.unfreeze is not set",
                 "a.toml:3:17", "freeze.unfreeze = \"loss\"; \"never\" if that is meant"},
        BadInput{"[freeze]\npolicy = \"linear\"\nunfreeze = \"lr\"\nunfreeze_rise = 0.3",
                 "freeze.unfreeze is \"lr\"", "a.toml:4:17", "\"loss\""},
        BadInput{"[freeze]\npolicy = \"weights-only\"\nunfreeze_rise = 0.3",
                 "freeze.unfreeze_rise = 0.3 has no effect: freeze.policy is \"weights-only\"",
                 "a.toml:3:17", "one of list, linear"},
        BadInput{"[elastic]\nevery = 5", "elastic.every = 5 has no effect: elastic.policy is not",
                 "a.toml:2:9", "predicted, pipetransformer"},
        BadInput{"[elastic]\ndepth = false", "elastic.depth = false has no effect", "a.toml:2:9",
                 "predicted"},
        BadInput{"[elastic]\nreplicas = false", "elastic.replicas = false has no effect",
                 "a.toml:2:12", "predicted"},
        BadInput{"[elastic]\nleast_gain = 0.5", "elastic.least_gain = 0.5 has no effect",
                 "a.toml:2:14", "predicted"},
        BadInput{"[elastic]\npolicy = \"pipetransformer\"\nschedule = false",
                 "elastic.schedule = false has no effect: elastic.policy is \"pipetransformer\"",
                 "a.toml:3:12", "elastic.policy = \"predicted\""},
        BadInput{"[cache]\ndir = \"/tmp\"", "cache.dir = \"/tmp\" has no effect: cache.disk",
                 "a.toml:2:7", "cache.disk"},
        BadInput{"[freeze]\nunfreeze = \"loss \"", "is unknown", "a.toml:2:12", "never, loss, lr"},
        BadInput{"[bach]\nglobal = 3", "unknown key bach.global", "a.toml:2:1", "batch.global"},
        BadInput{"global = 3", "unknown key global", "a.toml:1:1", "batch.global"},
        BadInput{"[zzzzzzzz]", "unknown key zzzzzzzz", "a.toml:1:", "--help-config"},
        BadInput{"batch = 3", "[batch] is a table", "a.toml:1:9", "batch.key = value"},
        BadInput{"[batch]\nglobal = \"3\"", "wrong type: string \"3\"", "a.toml:2:10: batch.global",
                 "an integer from 1"},
        BadInput{"[batch]\nglobal = 3.5", "wrong type", "a.toml:2:10", "an integer"},
        BadInput{"[batch]\n\nglobal = 0", "batch.global = 0 is out of range", "a.toml:3:10",
                 "from 1 to 1048576"},
        BadInput{"[batch]\nglobal = 99999999999999", "out of range", "a.toml:2:10", "1048576"},
        BadInput{"[batch]\nglobal = -4", "out of range", "a.toml:2:10", "1048576"},
        BadInput{"[optimizer]\nlr = nan", "out of range", "a.toml:2:6", "a number > 0"},
        BadInput{"[optimizer]\nlr = true", "wrong type", "a.toml:2:6", "a number > 0"},
        BadInput{"[optimizer]\nbetas = [0.9]", "wrong type", "a.toml:2:9", "two numbers"},
        BadInput{"[optimizer]\nbetas = [0.9, 1]", "out of range", "a.toml:2:15", "< 1"},
        BadInput{"[log]\ntensorboard = 1", "wrong type", "a.toml:2:15", "true or false"},
        BadInput{"[data]\ntext = [1]", "wrong type", "a.toml:2:9", "list of strings"},
        BadInput{"[data]\ntext = [\"\"]", "empty path", "a.toml:2:8", "paths or globs"},
        BadInput{"[run]\ndevice = \"gpu\"", "\"gpu\" is unknown", "a.toml:2:10", "cpu, cuda"},
        BadInput{"[run]\nname = \"a/b\"", "cannot name a directory", "a.toml:2:8", "without '/'"},
        BadInput{"[run]\nname = \"a\\u0000\"", "NUL", "a.toml:2:8", "a string"},
        BadInput{"[numerics]\ncompute = \"fp64\"", "\"fp64\" is unknown", "a.toml:2:11",
                 "fp32, tf32, bf16, fp8"},
        BadInput{"[data]\nwindows = \"fxed\"", "\"fxed\" is unknown", "a.toml:2:11",
                 "\"fixed\" (one of: shifted, fixed)"},
        BadInput{"[cache]\nmemory = 512", "cache.memory = 512 is not a size", "a.toml:2:10",
                 "\"512 MiB\""},
        BadInput{"[cache]\nmemory = \"\"", "is not a size", "a.toml:2:10", "\"512 MiB\""},
        BadInput{"[cache]\ndisk = \"-1 GiB\"", "-1 GiB is not a size", "a.toml:2:8", "or 0"},
        BadInput{"[cache]\ndisk = 1.5", "wrong type", "a.toml:2:8", "or 0"},
        BadInput{"[cache]\ndisk = \"1 GiB\"",
                 "cache.disk = \"1 GiB\" with data.windows = \"shifted\"", "a.toml:2:8",
                 "data.views = 4 (they come again after 4 epochs), data.windows = \"fixed\""},
        BadInput{"[cache]\nmemory = \"1 MiB\"\n[data]\nwindows = \"fixed\"\n[model]\nfamily = "
                 "\"bert\"",
                 "with model.task = \"masked-lm\": no sample comes again", "a.toml:2:10",
                 "data.views = 4"},
        BadInput{"[cache]\ndisk = \"1 MiB\"\n[data]\nwindows = \"fixed\"\n[numerics]\ncompute = "
                 "\"fp8\"\n[batch]\nglobal = 8\nmicrobatches = 4",
                 "its scales depend on all samples of a microbatch", "a.toml:2:8",
                 "batch.microbatches = 8 (of one sample each)"},
        BadInput{"[cache]\nuse = \"often\"", "\"often\" is unknown", "a.toml:2:7", "pays, always"},
        BadInput{"[parallel]\nschedule = \"1f2b\"", "\"1f2b\" is unknown", "a.toml:2:12", "gpipe"},
        BadInput{"[model]\nwidth = 100\nheads = 3", "model.heads = 3 does not divide model.width",
                 "a.toml:3:9", "1, 2, 4, 5, 10, 20, 25, 50, 100"},
        BadInput{"[batch]\nglobal = 12\nmicrobatches = 5",
                 "batch.microbatches = 5 does not divide batch.global = 12", "a.toml:3:16",
                 "1, 2, 3, 4, 6, 12"},
        BadInput{"[numerics]\nleaves = 3", "numerics.leaves = 3 does not divide", "a.toml:2:10",
                 "1, 2, 4, 8"},
        BadInput{"[batch]\nglobal = 1048576\nmicrobatches = 1\n[model]\ncontext = 1048576",
                 "more than 2^31 - 1", "a.toml:3:16", "more microbatches"},
        BadInput{"[parallel]\npp = 2\nlayout = [{stages = [{rank = 0, units = [0, 10]}], "
                 "microbatches = [0, 8]}]",
                 "both parallel.pp and parallel.layout", "a.toml:2:6", "parallel.pp = 0"},
        BadInput{"[parallel]\nlayout = 3", "not a list", "a.toml:2:10", "a list of pipelines"},
        BadInput{"[parallel]\nlayout = [{stages = [], microbatches = [0, 8]}]", "has no stages",
                 "a.toml:2:", "a list of pipelines"},
        BadInput{"[parallel]\nlayout = [{stages = [{rank = 0, units = [4, 4]}], microbatches = [0, "
                 "8]}]",
                 "units = [4, 4] is empty", "a.toml:2:", "a list of pipelines"},
        BadInput{
            "[parallel]\nlayout = [{stages = [{rank = -1, units = [0, 4]}], microbatches = [0, "
            "8]}]",
            "rank is not an integer >= 0", "a.toml:2:", "a list of pipelines"},
        BadInput{"[parallel]\nlayout = [{stages = [{rank = 0, unit = [0, 4]}], microbatches = [0, "
                 "8]}]",
                 "no key 'unit'", "a.toml:2:", "a list of pipelines"},
        BadInput{"[parallel]\nlayout = [{stages = [{rank = 0, units = [0, 4]}]}]",
                 "lacks the key 'microbatches'", "a.toml:2:", "a list of pipelines"},
        BadInput{"[batch]\nglobal = 1\nglobal = 2", "not valid TOML", "a.toml:3:", "key = value"},
        BadInput{"[batch\n", "not valid TOML", "a.toml:1:", "[table] lines"},
        BadInput{"\xff\xfe", "not valid TOML", "a.toml:1:", "[table] lines"}));

TEST(ByteSize, HasANumberAndAUnit) {
  const std::pair<const char*, std::int64_t> sizes[] = {{"0", 0},
                                                        {"0 MiB", 0},
                                                        {"7 B", 7},
                                                        {"1KiB", 1 << 10},
                                                        {"512 MiB", 512 << 20},
                                                        {"1.5 GiB", 3LL << 29},
                                                        {"2 TB", 2'000'000'000'000},
                                                        {"3 kB", 3000},
                                                        {"3 KB", 3000},
                                                        {"0.0001 kB", 0},
                                                        {"1.9999 KiB", 2047},
                                                        {"4194303 TiB", 4194303LL << 40},
                                                        {"4611686018427387903 B", (1LL << 62) - 1}};
  for (const auto& [text, bytes] : sizes) {
    const auto size = parse_byte_size(text);
    ASSERT_TRUE(size) << text;
    EXPECT_EQ(size->bytes, bytes) << text;
  }
  for (const char* text : {"",
                           " ",
                           "1",
                           "MiB",
                           "1 mib",
                           "1 Mib",
                           "1 M",
                           "-1 B",
                           "+1 B",
                           " 1 B",
                           "1 B ",
                           ".5 MiB",
                           "1..5 MiB",
                           "1.5.5 MiB",
                           "1e3 B",
                           "nan B",
                           "inf B",
                           "0x10 B",
                           "1 ",
                           "4194304 TiB",
                           "4611686018427387904 B",
                           "99999999999999999999 B",
                           "99999999999999999999.5 B",
                           "1,5 MiB",
                           "00"})
    EXPECT_FALSE(parse_byte_size(text)) << text;
}

RC_GTEST_PROP(ByteSize, WrittenIsReadBack, ()) {
  const ByteSize size{*rc::gen::inRange<std::int64_t>(0, 1 << 20) << *rc::gen::inRange(0, 42)};
  RC_ASSERT(parse_byte_size(to_text(size)) == size);
}

TEST(Config, SizesAreReadAndWritten) {
  const char* const fixed =
      "[data]\nwindows = \"fixed\"\n[cache]\nmemory = \"1.5 GiB\"\ndisk = 0\n";
  const RunConfig config = parse(fixed);
  EXPECT_EQ(config.cache.memory.bytes, 3LL << 29);
  EXPECT_NE(write_config(config).find("memory = \"1536 MiB\"\ndisk = 0\n"), std::string::npos);
  RunConfig set;
  for (const char* word :
       {"cache.memory=64MiB", "cache.memory=64 MiB", "cache.memory=\"64 MiB\""}) {
    set_config(word, set);
    EXPECT_EQ(set.cache.memory.bytes, 64 << 20) << word;
  }
  set_config("cache.memory=0", set);
  EXPECT_EQ(set.cache.memory.bytes, 0);
  EXPECT_EQ(cache_directory(set), run_directory(set));
  set.cache.dir = "relative";
  EXPECT_EQ(with_absolute_paths(set).cache.dir, std::filesystem::current_path() / "relative");
}

TEST(Config, BadSetsNameTheWord) {
  for (const char* word :
       {"", "nothing", "=3", "batch.global", "batch.global=", "batch.global=x",
        "batch.global=1\nother=2", "batch.globl=1", "batch=1", "batch.global.x=1", "data.text=\"a",
        "run.name=\xff", "cache.disk=5", "cache.disk=\"1 B"}) {
    const Error error = input_error([&] { with_set(word); });
    expect_has(error.where(), "--set");
    EXPECT_FALSE(error.fix().empty()) << word;
  }
}

TEST(Config, UnreadableFilesAreBadInput) {
  for (const char* path : {"/nonexistent/a.toml", "/", ""})
    expect_has(input_error([&] { load_config({path}, {}); }).message(), "cannot read");
  const TempFile empty("empty.toml", "");
  EXPECT_EQ(load_config({empty.path()}, {}), RunConfig());
}

TEST(Config, MistypedKeysFindTheirWay) {
  for (const Key& key : config_keys()) {
    const std::string name(key.name);
    // One letter less is still closest to its own key, or to one at the same distance.
    EXPECT_FALSE(nearest_key(name.substr(0, name.size() - 1)).empty()) << name;
    EXPECT_EQ(nearest_key(name), name);
  }
  EXPECT_EQ(nearest_key("optimiser.lr"), "optimizer.lr");
  EXPECT_EQ(nearest_key("pp"), "parallel.pp");
  EXPECT_EQ(nearest_key("qqqqqqqqqqqqqqqq"), "");
}

TEST(Config, LeavesFollowFromTheMicrobatchesAlone) {
  RunConfig config;
  for (const auto& [microbatches, leaves] : {std::pair{1, 1},
                                             {2, 2},
                                             {8, 8},
                                             {12, 12},
                                             {16, 16},
                                             {24, 12},
                                             {34, 2},
                                             {37, 1},
                                             {64, 16}}) {
    config.batch.microbatches = microbatches;
    EXPECT_EQ(reduction_leaves(config), leaves) << microbatches;
  }
  config.numerics.leaves = 4;
  EXPECT_EQ(reduction_leaves(config), 4);
}

TEST(Config, HelpNamesEveryKeyAndDefault) {
  const std::string help = config_help();
  const RunConfig defaults;
  for (const Key& key : config_keys()) {
    expect_has(help, "  " + std::string(key.name.substr(key.name.find('.') + 1)) + " = " +
                         value_text(key, defaults));
    expect_has(help, std::string(key.meaning));
  }
}

/// A random valid value for each field.
struct Fill {
  const Key& key;
  void operator()(bool* out) const { *out = *rc::gen::arbitrary<bool>(); }
  void operator()(int* out) const {
    const double most = std::min(key.range.high, low() + 999.0);
    *out = *rc::gen::inRange(low(), static_cast<int>(most) + 1);
  }
  void operator()(std::int64_t* out) const {
    const double most = std::min(key.range.high, 1e12);
    *out = *rc::gen::inRange<std::int64_t>(low(), static_cast<std::int64_t>(most) + 1);
  }
  void operator()(double* out) const {
    // Any bits in range: the text has to bring back exactly these. Doubles that are not negative
    // are in the order of their bits, so none is drawn in vain.
    const auto bits = [](double x) { return std::bit_cast<std::uint64_t>(x); };
    const auto first = bits(std::max(key.range.low, 0.0)) + (key.range.open_low ? 1 : 0);
    const auto last = bits(std::min(key.range.high, 1e300)) - (key.range.open_high ? 1 : 0);
    *out = std::bit_cast<double>(*rc::gen::inRange<std::uint64_t>(first, last + 1));
    RC_ASSERT(key.range.contains(*out));
  }
  void operator()(std::string* out) const {
    *out = !key.choices.empty() ? std::string(*rc::gen::elementOf(key.choices)) : text();
  }
  void operator()(std::vector<std::string>* out) const {
    out->resize(*rc::gen::inRange<std::size_t>(0, 4));
    for (std::string& item : *out) item = text();
  }
  void operator()(std::vector<std::int64_t>* out) const {
    out->resize(*rc::gen::inRange<std::size_t>(0, 4));
    for (std::int64_t& item : *out) (*this)(&item);
  }
  void operator()(std::vector<double>* out) const {
    out->resize(*rc::gen::inRange<std::size_t>(0, 4));
    for (double& value : *out) (*this)(&value);
  }
  void operator()(std::array<double, 2>* out) const {
    for (double& value : *out) (*this)(&value);
  }
  void operator()(ByteSize* out) const { (*this)(&out->bytes); }
  void operator()(Layout* out) const {
    const int cut = *rc::gen::inRange(1, 9);
    *out = {{{{{0, 0, cut}, {1, cut, 10}}, 0, cut}, {{{2, 0, 10}}, cut, 10}}};
  }
  int low() const { return std::isfinite(key.range.low) ? static_cast<int>(key.range.low) : 0; }
  /// Anything that TOML can say, quotes and control characters included.
  static std::string text() {
    return *rc::gen::nonEmpty(rc::gen::container<std::string>(rc::gen::inRange<char>(1, 127)));
  }
};

RC_GTEST_PROP(ConfigRoundTrip, WrittenIsReadBackToTheSameBits, ()) {
  RunConfig config, read_back;
  for (const Key& key : config_keys()) std::visit(Fill{key}, key.field(config));
  const std::string text = write_config(config);
  read_config(text, "config.toml", read_back);
  RC_ASSERT(read_back == config);
  RC_ASSERT(write_config(read_back) == text);
}

RC_GTEST_PROP(ConfigRoundTrip, NoTextCrashesTheReader, (const std::string& text)) {
  RunConfig config;
  try {
    read_config(text, "a.toml", config);
  } catch (const Error& error) {
    RC_ASSERT(error.code() == Exit::bad_input);
  }
}

TEST(Environment, VariablesAreKeysBetweenFilesAndTheCommandLine) {
  RunConfig config = parse("[run]\nsteps = 3\n[batch]\nglobal = 16\n");
  read_environment({{"CONCERTINA__RUN__STEPS", "10"},
                    {"CONCERTINA__LR__ONE_CYCLE__DIV", "30.5"},
                    {"Concertina__model__llama__KV_heads", "2"},
                    {"CONCERTINA__DATA__TEXT", "a.txt"}},
                   config);
  EXPECT_EQ(config.run.steps, 10);
  EXPECT_EQ(config.batch.global, 16);
  EXPECT_EQ(config.data.text, std::vector<std::string>{"a.txt"});
  EXPECT_EQ(config.where("run.steps"), "environment variable CONCERTINA__RUN__STEPS: run.steps");
  set_config("run.steps=7", config);
  EXPECT_EQ(config.run.steps, 7);
  EXPECT_EQ(from_environment(config), (Variables{{"CONCERTINA__DATA__TEXT", "[\"a.txt\"]"},
                                                 {"CONCERTINA__LR__ONE_CYCLE__DIV", "30.5"},
                                                 {"Concertina__model__llama__KV_heads", "2"}}));
}

TEST(Environment, WhatNamesNoKeyIsAnErrorWithTheNearest) {
  const auto refusal = [](const Variables& variables) {
    RunConfig config;
    return input_error([&] { read_environment(variables, config); });
  };
  const Error unknown = refusal({{"CONCERTINA__RUN__STEPZ", "10"}});
  expect_has(unknown.message(), "'run.stepz'");
  expect_has(unknown.where(), "CONCERTINA__RUN__STEPZ");
  expect_has(unknown.fix(), "CONCERTINA__RUN__STEPS (for run.steps)");
  expect_has(refusal({{"CONCERTINA__", "1"}}).where(), "CONCERTINA__");
  expect_has(refusal({{"CONCERTINA__RUN__STEPS", "ten"}}).where(), "CONCERTINA__RUN__STEPS");
  expect_has(refusal({{"CONCERTINA__RUN__STEPS", "1"}, {"CONCERTINA__run__steps", "1"}}).message(),
             "are both run.steps");
}

TEST(Environment, EveryKeyHasAVariableOfItsOwn) {
  std::set<std::string> all;
  for (const Key& key : config_keys()) {
    std::string name(key.name);
    std::ranges::replace(name, '-', '_');
    EXPECT_EQ(name.find("__"), std::string::npos);
    EXPECT_TRUE(all.insert(name).second) << name;
  }
  ASSERT_EQ(::setenv("CONCERTINA__RUN__NAME", "from here", 1), 0);
  const Variables found = environment_variables();
  ::unsetenv("CONCERTINA__RUN__NAME");
  EXPECT_NE(std::ranges::find(
                found, std::pair<std::string, std::string>("CONCERTINA__RUN__NAME", "from here")),
            found.end());
}

}  // namespace
}  // namespace concertina
