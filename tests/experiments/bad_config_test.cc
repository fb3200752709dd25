// Bad configs: each gives one error that says what is wrong, where, and what would be right.
#include <gtest/gtest.h>

#include "experiments/config/config_keys.h"
#include "tests/experiments/config_text.h"

namespace concertina {
namespace {

// Where, what, what would be right, and the file's text.
constexpr const char* kRefused = R"(
a.toml:2:1 | unknown key batch.globl | batch.global | [batch]\nglobl = 3
a.toml:2:1 | unknown key freeze.alpa | freeze.alpha (keys of [freeze]: units, tensors, tied, policy,
   every | [freeze]\nalpa = 0.2
a.toml:3:9 | freeze.alpha = 0.25 has no effect: freeze.policy is "linear" | freeze.policy =
   "pipetransformer"; "linear" reads freeze.every, freeze.after, freeze.max, freeze.unfreeze,
   freeze.start, freeze.end | [freeze]\npolicy = 'linear'\nalpha = 0.25
a.toml:3:7 | freeze.max = 3 has no effect: freeze.policy is not set | pipetransformer, autofreeze,
   plasticity; or "none" | [freeze]\nunits = 2\nmax = 3
a.toml:2:9 | freeze.every = 20 has no effect | linear | [freeze]\nevery = 20
a.toml:2:9 | freeze.alpha = 0.2 has no effect | pipetransformer | [freeze]\nalpha = 0.2
a.toml:2:12 | freeze.unfreeze = "lr" has no effect | freeze.policy | [freeze]\nunfreeze = 'lr'
a.toml:3:9 | conflict | freeze.units = 0 | [freeze]\npolicy = 'linear'\nunits = 2
freeze.end (default) | not less than freeze.end = 0.6 | above freeze.start | [freeze]\npolicy =
   'linear'\nstart = 0.7
freeze.at (default) | needs a table | epoch 2: 7 | [freeze]\npolicy = 'list'
a.toml:3:6 | "step 99999999999999999999: 3", which is not a valid row | epoch 2: 7 | [freeze]\npolicy =
   'list'\nat = ['step 99999999999999999999: 3']
a.toml:3:6 | the model has 4 layers | 1 to 4 layers | [freeze]\npolicy = 'list'\nat = ['epoch 1: 5']
a.toml:4:6 | at most 2 layers may be frozen | at most 2 | [freeze]\npolicy = 'list'\nmax = 2\nat =
   'epoch 1: 3'
a.toml:3:7 | freeze.max = 5, but the model has 4 | at most 4 | [freeze]\npolicy = 'linear'\nmax = 5
a.toml:3:17 | freeze.unfreeze_rise = 0.3 has no effect: freeze.unfreeze is not set | freeze.unfreeze
   = "loss"; or "never" | [freeze]\npolicy = 'linear'\nunfreeze_rise = 0.3
a.toml:4:17 | freeze.unfreeze is "lr" | "loss" | [freeze]\npolicy = 'linear'\nunfreeze =
   'lr'\nunfreeze_rise = 0.3
a.toml:3:17 | freeze.unfreeze_rise = 0.3 has no effect: freeze.policy is "weights-only" | one of
   list, linear | [freeze]\npolicy = 'weights-only'\nunfreeze_rise = 0.3
a.toml:2:9 | elastic.every = 5 has no effect: elastic.policy is not | predicted, pipetransformer |
   [elastic]\nevery = 5
a.toml:2:9 | elastic.depth = false has no effect | predicted | [elastic]\ndepth = false
a.toml:2:12 | elastic.replicas = false has no effect | predicted | [elastic]\nreplicas = false
a.toml:2:14 | elastic.least_gain = 0.5 has no effect | predicted | [elastic]\nleast_gain = 0.5
a.toml:3:12 | elastic.schedule = false has no effect: elastic.policy is "pipetransformer" |
   elastic.policy = "predicted" | [elastic]\npolicy = 'pipetransformer'\nschedule = false
a.toml:2:7 | cache.dir = "/tmp" has no effect: cache.disk | cache.disk | [cache]\ndir = '/tmp'
a.toml:2:1 | unknown key bach.global | batch.global | [bach]\nglobal = 3
a.toml:1:1 | unknown key global | batch.global | global = 3
a.toml:1: | unknown key zzzzzzzz | --help-config | [zzzzzzzz]
a.toml:1:9 | [batch] must be a table | batch.key = value | batch = 3
a.toml:2:10: batch.global | wrong type: string "3" | an integer from 1 | [batch]\nglobal = '3'
a.toml:3:10 | batch.global = 0 is out of range | from 1 to 1048576 | [batch]\n\nglobal = 0
a.toml:2:9 | wrong type | two numbers | [optimizer]\nbetas = [0.9]
a.toml:2:15 | out of range | < 1 | [optimizer]\nbetas = [0.9, 1]
a.toml:2:8 | empty path | paths or globs | [data]\ntext = ['']
a.toml:2:8 | cannot name a directory | without '/' | [run]\nname = 'a/b'
a.toml:2:8 | NUL | a string | [run]\nname = "a\u0000"
a.toml:2:11 | "fxed" is not a valid value | "fixed" (one of: shifted, fixed) | [data]\nwindows = 'fxed'
a.toml:2:10 | cache.memory = 512 is not a size | "512 MiB" | [cache]\nmemory = 512
a.toml:2:10 | is not a size | "512 MiB" | [cache]\nmemory = ''
a.toml:2:8 | -1 GiB is not a size | or 0 | [cache]\ndisk = '-1 GiB'
a.toml:2:8 | wrong type | or 0 | [cache]\ndisk = 1.5
a.toml:2:8 | cache.disk = "1 GiB" with data.windows = "shifted" | data.views = 4 (samples repeat
   after 4 epochs), data.windows = "fixed" | [cache]\ndisk = '1 GiB'
a.toml:2:10 | with model.task = "masked-lm": no sample is ever repeated | data.views = 4 |
   [cache]\nmemory = '1 MiB'\n[data]\nwindows = 'fixed'\n[model]\nfamily = 'bert'
a.toml:2:8 | its scales depend on all samples of a microbatch | batch.microbatches = 8 (of one
   sample each) | [cache]\ndisk = '1 MiB'\n[data]\nwindows = 'fixed'\n[numerics]\ncompute =
   'fp8'\n[batch]\nglobal = 8\nmicrobatches = 4
a.toml:3:9 | model.heads = 3 does not divide model.width | 1, 2, 4, 5, 10, 20, 25, 50, 100 |
   [model]\nwidth = 100\nheads = 3
a.toml:3:16 | batch.microbatches = 5 does not divide batch.global = 12 | 1, 2, 3, 4, 6, 12 |
   [batch]\nglobal = 12\nmicrobatches = 5
a.toml:2:10 | numerics.leaves = 3 does not divide | 1, 2, 4, 8 | [numerics]\nleaves = 3
a.toml:3:16 | more than 2^31 - 1 | more microbatches | [batch]\nglobal = 1048576\nmicrobatches =
   1\n[model]\ncontext = 1048576
a.toml:2:6 | parallel.pp and parallel.layout both | parallel.pp = 0 | [parallel]\npp = 2\nlayout =
   [{stages = [{rank = 0, units = [0, 10]}], microbatches = [0, 8]}]
a.toml:2:10 | wrong type: integer 3 | a list of pipelines | [parallel]\nlayout = 3
a.toml:2: | has no stages | a list of pipelines | [parallel]\nlayout = [{stages = [], microbatches =
   [0, 8]}]
a.toml:2: | units = [4, 4] is empty | a list of pipelines | [parallel]\nlayout = [{stages = [{rank =
   0, units = [4, 4]}], microbatches = [0, 8]}]
a.toml:2: | rank = -1 is out of range | a whole number from 0 | [parallel]\nlayout = [{stages =
   [{rank = -1, units = [0, 4]}], microbatches = [0, 8]}]
a.toml:2: | unknown key parallel.layout.stages.unit | units (one of: rank, units) |
   [parallel]\nlayout = [{stages = [{rank = 0, unit = [0, 4]}], microbatches = [0, 8]}]
a.toml:2: | missing key parallel.layout.microbatches | a list of pipelines |
   [parallel]\nlayout = [{stages = [{rank = 0, units = [0, 4]}]}]
a.toml:3: | not valid TOML | key = value | [batch]\nglobal = 1\nglobal = 2
a.toml:1: | not valid TOML | [table] lines | [batch\n
)";

TEST(BadConfig, SaysWhatWhereAndWhatWouldBeRight) {
  expect_refusals(kRefused, parse);
  const Error error = input_error([] { parse("\xff\xfe"); });
  expect_has(error.message(), "not valid TOML");
  expect_has(error.fix(), "[table] lines");
}

/// Values that a key's row of the table excludes are rejected with their position.
TEST(BadConfig, EveryKeyRefusesOtherTypesAndValues) {
  int refused = 0;
  for (const Key& key : config_keys()) {
    const auto expect_refused = [&](const std::string& value, std::string_view what) {
      RunConfig config;
      const std::string toml = fmt::format("[{}]\n{} = {}", key.section(), key.within(), value);
      const Error error = input_error([&] { read_config(toml, "a.toml", config); });
      SCOPED_TRACE(toml);
      expect_has(error.message(), what);
      expect_has(error.where(), fmt::format("a.toml:2:{}", key.within().size() + 4));
      EXPECT_FALSE(error.fix().empty());
      for (const std::string_view choice : key.choices) expect_has(error.fix(), choice);
      ++refused;
    };
    expect_refused("1979-05-27", "wrong type");
    if (!key.choices.empty() && key.is_file == nullptr)
      expect_refused("'no such'", "is not a valid value");
    if (holds<std::int64_t>(key) || holds<int>(key)) {
      expect_refused("0.5", "wrong type");
      for (const double end : {key.range.low - 1, key.range.high + 1})
        if (std::abs(end) < 1e15) expect_refused(fmt::format("{:.0f}", end), "out of range");
    }
    if (!holds<double>(key)) continue;
    for (const double end : {key.range.low, key.range.high})
      if (std::abs(end) < 1e15)
        expect_refused(fmt::format("{}", end < key.range.high ? end - 1 : end + 1), "out of range");
    expect_refused("nan", "out of range");
  }
  EXPECT_GT(refused, 200);
}

/// An excluded end of a range must also be excluded after rounding to fp32, which kernels use.
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
    expect_has(error.where(), "command line");
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
    // With one letter less, the nearest key is still its own, or one at the same distance.
    EXPECT_FALSE(nearest_key(name.substr(0, name.size() - 1)).empty()) << name;
    EXPECT_EQ(nearest_key(name), name);
  }
  EXPECT_EQ(nearest_key("optimiser.lr"), "optimizer.lr");
  EXPECT_EQ(nearest_key("pp"), "parallel.pp");
  EXPECT_EQ(nearest_key("qqqqqqqqqqqqqqqq"), "");
}

}  // namespace
}  // namespace concertina
