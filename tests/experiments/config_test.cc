// Config: overlays, sizes, environment variables, and the round trip.
#include "experiments/config/config.h"

#include <fmt/format.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <bit>
#include <cstdio>
#include <filesystem>
#include <set>
#include <sstream>

#include "experiments/config/config_environment.h"
#include "experiments/config/config_keys.h"
#include "experiments/config/config_toml.h"
#include "parallel/plan/reduction_tree.h"
#include "tests/experiments/config_text.h"

namespace concertina {
namespace {

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
       "data.format = one of tokens, tsv, csv, jsonl, conll, squad, mnist, cifar10, cifar100, "
       "cifar100-coarse, webdataset, image-folder; \"text\" reads data.text, data.windows",
       "data.format=tokens"}};
  for (const auto& [option, message, fix, choice] : cases) {
    const Error error = input_error([&] { load_config({}, {option}); });
    EXPECT_EQ(error.message(), message);
    EXPECT_EQ(error.fix(), fix);
    EXPECT_NO_THROW(load_config({}, {option, choice}));
  }
}

/// The table of an option may be separate or within its section.
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
  const Error error =
      input_error([&] { read_config("[model.llama]\nkv_head = 2\n", "a.toml", config); });
  expect_has(error.where(), "a.toml:2");
  expect_has(error.fix(), "model.llama.kv_heads");
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
  EXPECT_EQ(config.where("model.layers"), "command line: model.layers");
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

ModelSpec spec_of_layers(int layers) {
  ModelSpec model;
  for (int layer = 0; layer <= layers; ++layer)  // the last one is the head
    model.units.push_back({fmt::format("{}", layer), {{"w", {2, 2}, true, {}, ""}}, {}});
  for (int layer = 1; layer <= layers; ++layer) model.layer_ends.push_back(layer);
  return model;
}

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
  std::istringstream wrong(
      "| |1|MiB|1 mib|1 Mib|1 M|-1 B|+1 B| 1 B|1 B |.5 MiB|1..5 MiB|1.5.5 MiB|1e3 B|nan B|inf "
      "B|0x10 B|1 |4194304 TiB|4611686018427387904 B|99999999999999999999 B|99999999999999999999.5 "
      "B|1,5 MiB|00");
  for (std::string text; std::getline(wrong, text, '|');)
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
  expect_has(write_config(config), "memory = \"1536 MiB\"\ndisk = 0\n");
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

TEST(Config, LeavesFollowFromTheMicrobatchesAlone) {
  RunConfig config;
  config.batch.microbatches = 24;
  EXPECT_EQ(reduction_leaves(config), default_leaves(24));
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

/// Fills each field with a random valid value.
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
    // Draws any bits in range, since the text must reproduce exactly these. The order of
    // nonnegative doubles is that of their bits, so every draw is valid. Bounds hold in fp32 too.
    const auto bits = [](double x) { return std::bit_cast<std::uint64_t>(x); };
    constexpr float kMost = std::numeric_limits<float>::max();
    const double low = std::max(key.range.low, 0.0);
    const double high = std::min(key.range.high, static_cast<double>(kMost));
    const auto first =
        bits(key.range.open_low ? std::nextafter(static_cast<float>(low), kMost) : low);
    const auto last =
        bits(key.range.open_high ? std::nextafter(static_cast<float>(high), 0.0F) : high);
    *out = std::bit_cast<double>(*rc::gen::inRange<std::uint64_t>(first, last + 1));
    RC_ASSERT(key.range.contains(*out));
  }
  void operator()(std::string* out) const {
    *out = !key.choices.empty() ? std::string(*rc::gen::elementOf(key.choices)) : text();
  }
  void operator()(std::vector<std::string>* out) const {
    out->resize(*rc::gen::inRange<std::size_t>(0, 4));
    for (std::string& item : *out) (*this)(&item);
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
  /// Returns any text that TOML can represent, including quotes and control characters.
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
             "both set run.steps");
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
