// Bad configs: each is one error that says what, where and what would be right.
#include <gtest/gtest.h>

#include "experiments/config/config_keys.h"
#include "tests/experiments/config_text.h"

namespace concertina {
namespace {

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

const BadInput kBadInputs[] = {
    {"[batch]\nglobl = 3", "unknown key batch.globl", "a.toml:2:1", "batch.global"},
    {"[freeze]\nalpa = 0.2", "unknown key freeze.alpa", "a.toml:2:1",
     "freeze.alpha (keys of [freeze]: units, tensors, tied, policy, every"},
    {"[freeze]\npolicy = 'pipetransformer'\nalpha = 2", "out of range", "a.toml:3:9",
     "from 0 to 1"},
    {"[freeze]\npolicy = 'pipetransformer'\nrounding = 'up'", "\"up\" is unknown", "a.toml:3:12",
     "ceil, floor"},
    {"[freeze]\npolicy = 'pipe'", "\"pipe\" is unknown", "a.toml:2:10",
     "none, list, linear, pipetransformer"},
    {"[freeze]\npolicy = 'linear'\nalpha = 0.25",
     "freeze.alpha = 0.25 has no effect: freeze.policy is \"linear\"", "a.toml:3:9",
     "freeze.policy = \"pipetransformer\"; \"linear\" reads freeze.every, freeze.after, "
     "freeze.max, freeze.unfreeze, freeze.start, freeze.end"},
    {"[freeze]\nunits = 2\nmax = 3", "freeze.max = 3 has no effect: freeze.policy is not set",
     "a.toml:3:7", "pipetransformer, autofreeze, plasticity; \"none\" if that is meant"},
    {"[freeze]\nevery = 20", "freeze.every = 20 has no effect", "a.toml:2:9", "linear"},
    {"[freeze]\nalpha = 0.2", "freeze.alpha = 0.2 has no effect", "a.toml:2:9", "pipetransformer"},
    {"[freeze]\nunfreeze = 'lr'", "freeze.unfreeze = \"lr\" has no effect", "a.toml:2:12",
     "freeze.policy"},
    {"[freeze]\npolicy = 'linear'\nunits = 2", "both say what is frozen", "a.toml:3:9",
     "freeze.units = 0"},
    {"[freeze]\npolicy = 'linear'\nstart = 0.7", "not before freeze.end = 0.6",
     "freeze.end (default)", "above freeze.start"},
    {"[freeze]\npolicy = 'list'", "needs a table", "freeze.at (default)", "epoch 2: 7"},
    {"[freeze]\npolicy = 'list'\nat = ['step 99999999999999999999: 3']",
     "\"step 99999999999999999999: 3\", which is no row", "a.toml:3:6", "epoch 2: 7"},
    {"[freeze]\npolicy = 'list'\nat = ['epoch 1: 5']", "the model has 4 layers", "a.toml:3:6",
     "1 to 4 layers"},
    {"[freeze]\npolicy = 'list'\nmax = 2\nat = 'epoch 1: 3'", "at most 2 layers may be frozen",
     "a.toml:4:6", "at most 2"},
    {"[freeze]\npolicy = 'linear'\nmax = 5", "freeze.max = 5, but the model has 4", "a.toml:3:7",
     "at most 4"},
    {"[freeze]\npolicy = 'linear'\nunfreeze_rise = 0.3",
     "freeze.unfreeze_rise = 0.3 has no effect: freeze.unfreeze is not set", "a.toml:3:17",
     "freeze.unfreeze = \"loss\"; \"never\" if that is meant"},
    {"[freeze]\npolicy = 'linear'\nunfreeze = 'lr'\nunfreeze_rise = 0.3",
     "freeze.unfreeze is \"lr\"", "a.toml:4:17", "\"loss\""},
    {"[freeze]\npolicy = 'weights-only'\nunfreeze_rise = 0.3",
     "freeze.unfreeze_rise = 0.3 has no effect: freeze.policy is \"weights-only\"", "a.toml:3:17",
     "one of list, linear"},
    {"[elastic]\nevery = 5", "elastic.every = 5 has no effect: elastic.policy is not", "a.toml:2:9",
     "predicted, pipetransformer"},
    {"[elastic]\ndepth = false", "elastic.depth = false has no effect", "a.toml:2:9", "predicted"},
    {"[elastic]\nreplicas = false", "elastic.replicas = false has no effect", "a.toml:2:12",
     "predicted"},
    {"[elastic]\nleast_gain = 0.5", "elastic.least_gain = 0.5 has no effect", "a.toml:2:14",
     "predicted"},
    {"[elastic]\npolicy = 'pipetransformer'\nschedule = false",
     "elastic.schedule = false has no effect: elastic.policy is \"pipetransformer\"", "a.toml:3:12",
     "elastic.policy = \"predicted\""},
    {"[cache]\ndir = '/tmp'", "cache.dir = \"/tmp\" has no effect: cache.disk", "a.toml:2:7",
     "cache.disk"},
    {"[freeze]\nunfreeze = 'loss '", "is unknown", "a.toml:2:12", "never, loss, lr"},
    {"[bach]\nglobal = 3", "unknown key bach.global", "a.toml:2:1", "batch.global"},
    {"global = 3", "unknown key global", "a.toml:1:1", "batch.global"},
    {"[zzzzzzzz]", "unknown key zzzzzzzz", "a.toml:1:", "--help-config"},
    {"batch = 3", "[batch] is a table", "a.toml:1:9", "batch.key = value"},
    {"[batch]\nglobal = '3'", "wrong type: string \"3\"", "a.toml:2:10: batch.global",
     "an integer from 1"},
    {"[batch]\nglobal = 3.5", "wrong type", "a.toml:2:10", "an integer"},
    {"[batch]\n\nglobal = 0", "batch.global = 0 is out of range", "a.toml:3:10",
     "from 1 to 1048576"},
    {"[batch]\nglobal = 99999999999999", "out of range", "a.toml:2:10", "1048576"},
    {"[batch]\nglobal = -4", "out of range", "a.toml:2:10", "1048576"},
    {"[optimizer]\nlr = nan", "out of range", "a.toml:2:6", "a number > 0"},
    {"[optimizer]\nlr = true", "wrong type", "a.toml:2:6", "a number > 0"},
    {"[optimizer]\nbetas = [0.9]", "wrong type", "a.toml:2:9", "two numbers"},
    {"[optimizer]\nbetas = [0.9, 1]", "out of range", "a.toml:2:15", "< 1"},
    {"[log]\ntensorboard = 1", "wrong type", "a.toml:2:15", "true or false"},
    {"[data]\ntext = [1]", "wrong type", "a.toml:2:9", "list of strings"},
    {"[data]\ntext = ['']", "empty path", "a.toml:2:8", "paths or globs"},
    {"[run]\ndevice = 'gpu'", "\"gpu\" is unknown", "a.toml:2:10", "cpu, cuda"},
    {"[run]\nname = 'a/b'", "cannot name a directory", "a.toml:2:8", "without '/'"},
    {"[run]\nname = \"a\\u0000\"", "NUL", "a.toml:2:8", "a string"},
    {"[numerics]\ncompute = 'fp64'", "\"fp64\" is unknown", "a.toml:2:11", "fp32, tf32, bf16, fp8"},
    {"[data]\nwindows = 'fxed'", "\"fxed\" is unknown", "a.toml:2:11",
     "\"fixed\" (one of: shifted, fixed)"},
    {"[cache]\nmemory = 512", "cache.memory = 512 is not a size", "a.toml:2:10", "\"512 MiB\""},
    {"[cache]\nmemory = ''", "is not a size", "a.toml:2:10", "\"512 MiB\""},
    {"[cache]\ndisk = '-1 GiB'", "-1 GiB is not a size", "a.toml:2:8", "or 0"},
    {"[cache]\ndisk = 1.5", "wrong type", "a.toml:2:8", "or 0"},
    {"[cache]\ndisk = '1 GiB'", "cache.disk = \"1 GiB\" with data.windows = \"shifted\"",
     "a.toml:2:8", "data.views = 4 (they come again after 4 epochs), data.windows = \"fixed\""},
    {"[cache]\nmemory = '1 MiB'\n[data]\nwindows = 'fixed'\n[model]\nfamily = 'bert'",
     "with model.task = \"masked-lm\": no sample comes again", "a.toml:2:10", "data.views = 4"},
    {"[cache]\ndisk = '1 MiB'\n[data]\nwindows = 'fixed'\n[numerics]\ncompute = "
     "'fp8'\n[batch]\nglobal = 8\nmicrobatches = 4",
     "its scales depend on all samples of a microbatch", "a.toml:2:8",
     "batch.microbatches = 8 (of one sample each)"},
    {"[cache]\nuse = 'often'", "\"often\" is unknown", "a.toml:2:7", "pays, always"},
    {"[parallel]\nschedule = '1f2b'", "\"1f2b\" is unknown", "a.toml:2:12", "gpipe"},
    {"[model]\nwidth = 100\nheads = 3", "model.heads = 3 does not divide model.width", "a.toml:3:9",
     "1, 2, 4, 5, 10, 20, 25, 50, 100"},
    {"[batch]\nglobal = 12\nmicrobatches = 5",
     "batch.microbatches = 5 does not divide batch.global = 12", "a.toml:3:16",
     "1, 2, 3, 4, 6, 12"},
    {"[numerics]\nleaves = 3", "numerics.leaves = 3 does not divide", "a.toml:2:10", "1, 2, 4, 8"},
    {"[batch]\nglobal = 1048576\nmicrobatches = 1\n[model]\ncontext = 1048576",
     "more than 2^31 - 1", "a.toml:3:16", "more microbatches"},
    {"[parallel]\npp = 2\nlayout = [{stages = [{rank = 0, units = [0, 10]}], microbatches = [0, "
     "8]}]",
     "both parallel.pp and parallel.layout", "a.toml:2:6", "parallel.pp = 0"},
    {"[parallel]\nlayout = 3", "not a list", "a.toml:2:10", "a list of pipelines"},
    {"[parallel]\nlayout = [{stages = [], microbatches = [0, 8]}]", "has no stages",
     "a.toml:2:", "a list of pipelines"},
    {"[parallel]\nlayout = [{stages = [{rank = 0, units = [4, 4]}], microbatches = [0, 8]}]",
     "units = [4, 4] is empty", "a.toml:2:", "a list of pipelines"},
    {"[parallel]\nlayout = [{stages = [{rank = -1, units = [0, 4]}], microbatches = [0, 8]}]",
     "rank is not an integer >= 0", "a.toml:2:", "a list of pipelines"},
    {"[parallel]\nlayout = [{stages = [{rank = 0, unit = [0, 4]}], microbatches = [0, 8]}]",
     "no key 'unit'", "a.toml:2:", "a list of pipelines"},
    {"[parallel]\nlayout = [{stages = [{rank = 0, units = [0, 4]}]}]",
     "lacks the key 'microbatches'", "a.toml:2:", "a list of pipelines"},
    {"[batch]\nglobal = 1\nglobal = 2", "not valid TOML", "a.toml:3:", "key = value"},
    {"[batch\n", "not valid TOML", "a.toml:1:", "[table] lines"},
    {"\xff\xfe", "not valid TOML", "a.toml:1:", "[table] lines"}};

INSTANTIATE_TEST_SUITE_P(, BadConfig, testing::ValuesIn(kBadInputs));

/// An end that is not in the range is not what kernels get in fp32 either.
TEST(Config, ValuesHoldInFp32) {
  int ends = 0;
  for (const Key& key : config_keys()) {
    RunConfig config;
    const KeyField field = key.field(config);
    const bool pair = std::holds_alternative<std::array<double, 2>*>(field);
    if (!pair && !std::holds_alternative<double*>(field)) continue;
    const auto set = [&](double value) {
      return fmt::format(fmt::runtime(pair ? "{}=[{},{}]" : "{}={}"), key.name, value, value);
    };
    const auto inside = [&](double end, double from) {
      const float last = std::nextafter(static_cast<float>(end), static_cast<float>(from));
      for (const double bad : {std::nextafter(end, from), (end + 0.4 * last) / 1.4}) {
        const Error error = input_error([&] { set_config(set(bad), config); });
        expect_has(error.message(), " in fp32");
        expect_has(error.message(), std::string(key.name));
      }
      EXPECT_NO_THROW(set_config(set(last), config)) << set(last);
      ++ends;
    };
    if (key.range.open_low) inside(key.range.low, 1);
    if (key.range.open_high) inside(key.range.high, 0);
  }
  EXPECT_GT(ends, 8);
  expect_has(input_error([] { with_set("optimizer.lr=1e39"); }).message(), "is inf in fp32");
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

}  // namespace
}  // namespace concertina
