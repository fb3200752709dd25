// Tests config.json of a published model key by key and task by task: the same numbers as
// transformers, or one error.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>

#include <map>

#include "core/error.h"
#include "experiments/hugging_face/published_config_text.h"
#include "io/file.h"
#include "models/task.h"
#include "tests/errors.h"
#include "tests/experiments/published_folders.h"
#include "tests/temporary_directory.h"

namespace concertina {
namespace {

/// Returns `config` with one key missing or changed, as described in published_keys.json.
nlohmann::json changed(nlohmann::json config, const nlohmann::json& one) {
  nlohmann::json* inner = &config;
  const auto keys = one.at("key").get<std::vector<std::string>>();
  for (std::size_t i = 0; i + 1 < keys.size(); ++i) inner = &(*inner)[keys[i]];
  if (one.contains("value"))
    (*inner)[keys.back()] = one["value"];
  else
    inner->erase(keys.back());
  return config;
}

/// Returns the logits of a folder, or none if it is rejected.
std::vector<float> logits_if_read(const std::string& folder, const nlohmann::json& expected) {
  try {
    const bool text = expected.contains("input_ids");
    RunConfig config = config_from(folder, text ? Settings{"model.context=12"} : Settings{});
    config.every_logit = true;
    const PublishedWeights weights(folder, read_published_config(folder), config);
    weights.check_copies();
    return logits_of(config, weights, expected);
  } catch (const Error& error) {
    EXPECT_EQ(error.code(), Exit::bad_input) << error.what();
    return {};
  }
}

TEST(PublishedKeys, EachIsRefusedOrHasTheLogitsOfTransformers) {
  const auto golden =
      nlohmann::json::parse(bytes_of_file(CONCERTINA_SOURCE "/tests/golden/published_keys.json"));
  std::size_t read = 0, all = 0;
  for (const auto& [name, cases] : golden.items()) {
    const PublishedCopy model(name);
    const auto expected = nlohmann::json::parse(bytes_of_file(model.source + "/expected.json"));
    const auto right = expected.at("logits").get<std::vector<float>>();
    for (const nlohmann::json& one : cases) {
      ++all;
      model.write(changed(model.config, one));
      const std::vector<float> logits = logits_if_read(model.path, expected);
      if (logits.empty()) continue;
      ++read;
      ASSERT_EQ(logits.size(), right.size()) << name << " " << one;
      constexpr std::size_t kPlaces = 8;
      const std::size_t step = std::max<std::size_t>(1, right.size() / 3 / kPlaces);
      float scale = 0, error = 0;
      for (std::size_t i = 0; i < kPlaces && i * step < right.size(); ++i) {
        const float wanted =
            one["logits"].is_null() ? right[i * step] : one["logits"][i].get<float>();
        scale = std::max(scale, std::abs(wanted));
        error = std::max(error, std::abs(wanted - logits[i * step]));
      }
      EXPECT_LE(error, 2e-5F * scale) << name << " " << one;
    }
  }
  EXPECT_GT(all, 500U);
  EXPECT_GT(2 * read, all) << read << " of " << all;
}

TEST(PublishedKeys, AMissingWindowIsTheOneOfTransformers) {
  const PublishedCopy model("mistral");
  nlohmann::json config = model.config;
  config["max_position_embeddings"] = 5000;
  config.erase("sliding_window");
  model.write(config);
  EXPECT_THROW(config_from(model.path), Error);
  EXPECT_EQ(config_from(model.path, {"model.context=4096"}).model.context, 4096);
  config["sliding_window"] = nullptr;
  model.write(config);
  EXPECT_EQ(config_from(model.path).model.context, 5000);
}

TEST(PublishedKeys, HarmlessOnesOfPublishedModelsAreRead) {
  const std::map<std::string, nlohmann::json> added{
      {"bert-masked-lm",
       {{"eos_token_ids", 0},
        {"num_return_sequences", 1},
        {"emb_size", 312},
        {"cell", nlohmann::json::object()},
        {"structure", nlohmann::json::array()},
        {"pre_trained", ""},
        {"training", ""},
        {"bad_words_ids", {{1}}},
        {"forced_eos_token_id", 2},
        {"diversity_penalty", 0.0}}},
      {"llama", {{"max_sequence_length", 2048}, {"rope_scaling", {{"finetuned", true}}}}},
      {"gpt-neox", {{"num_steps", "global_step168000"}}},
      {"opt",
       {{"learned_embeddings", true},
        {"scale_embeddings", false},
        {"word_embed_proj_dim", nullptr}}},
      {"phi", {{"num_key_value_heads", nullptr}}}};
  for (const auto& [name, keys] : added) {
    const PublishedCopy model(name);
    for (const auto& [key, value] : keys.items()) {
      nlohmann::json config = model.config;
      config[key] = value;
      model.write(config);
      EXPECT_NO_THROW(config_from(model.path)) << name << " " << key;
    }
  }
}

/// Returns the folder whose name starts with the type; empty: there is none.
std::string folder_of_type(std::string type) {
  if (aliases().contains(type)) return type;
  std::ranges::replace(type, '_', '-');
  for (const char* task : {"-masked-lm", "", "-classification"})
    if (fs::exists(folder_of(type + task))) return type + task;
  return "";
}

/// Returns whether a family of models supports the task.
bool can(const std::string& family, std::string_view task) {
  const bool decoder = family != "bert" && family != "vit";
  if (task == "causal-lm") return decoder;
  if (task == "masked-lm" || task == "question-answering") return family == "bert";
  return task == "classification" || family != "vit";
}

/// Imports, changes all weights as training would, exports, and imports again.
void round_trip(const PublishedCopy& model, const std::string& task) {
  const Settings sets{"model.task=" + task, "run.dir=" + model.path, "model.classes=3"};
  const std::string folder = model.path, out = folder + "/out";
  Settings own = sets;
  if (!find_task(task).classes) own.pop_back();
  const RunConfig config = config_from(folder, own);
  const PublishedWeights weights(folder, read_published_config(folder), config);
  weights.check_copies();
  keep_published_config(folder, config);
  std::map<std::string, std::vector<float>> trained;
  for (const auto& [name, shape] : parameter_shapes(config)) {
    std::vector<float>& values = trained[name];
    values.resize(static_cast<std::size_t>(elements_of(shape)));
    weights.read(name, values);
    for (std::size_t i = 0; i < values.size(); ++i) values[i] += 0.001F * static_cast<float>(i % 7);
  }
  write_published(out, config, StoredType::f32, [&](const std::string& name, std::span<float> to) {
    std::ranges::copy(trained.at(name), to.begin());
  });
  RunConfig again = config_from(out, {"run.dir=" + folder});
  EXPECT_EQ(again.model.task, task);
  again.model.from = config.model.from;
  EXPECT_EQ(model_config_of(again).classes, model_config_of(config).classes);
  const PublishedWeights back(out, read_published_config(out), again);
  EXPECT_TRUE(back.missing().empty());
  for (const auto& [name, values] : trained) {
    std::vector<float> read(values.size());
    EXPECT_TRUE(back.read(name, read)) << name;
    EXPECT_EQ(read, values) << name;
  }
  // If config.json names no architecture, or only the body, the tensors decide.
  const std::string path = out + "/config.json";
  nlohmann::json bare = nlohmann::json::parse(read_file(path, 1 << 20));
  bare.erase("architectures");
  write_bytes(path, bare.dump());
  RunConfig unsaid = config_from(out, own);
  unsaid.model.from = config.model.from;
  const PublishedWeights found(out, read_published_config(out), unsaid);
  EXPECT_TRUE(found.missing().empty()) << fmt::format("{}", fmt::join(found.missing(), ", "));
  EXPECT_TRUE(found.left_out().empty()) << fmt::format("{}", fmt::join(found.left_out(), ", "));
  fs::remove_all(out);
}

TEST(PublishedTasks, EachTypeIsTrainedForEachTaskAndComesBack) {
  std::size_t trips = 0;
  for (const auto& [type, table] : published_models()) {
    const std::string folder = folder_of_type(std::string(type));
    ASSERT_NE(folder, "") << type << " has no model here";
    for (const auto& [task, what] : tasks()) {
      if (!can(std::string(table.family), task)) continue;
      SCOPED_TRACE(fmt::format("{} for {}", type, task));
      const PublishedCopy model(folder);
      EXPECT_NO_THROW(round_trip(model, std::string(task)));
      ++trips;
    }
  }
  EXPECT_GT(trips, 70U);
}

TEST(PublishedModel, TheOldRobertaSaysItsTypeByItsArchitecture) {
  const PublishedCopy model("roberta-masked-lm");
  nlohmann::json config = model.config;
  config.erase("model_type");
  model.write(config);
  EXPECT_EQ(read_published_config(model.path).type, "roberta");
  config.erase("architectures");
  model.write(config);
  const Error error = input_error([&] { read_published_config(model.path); });
  expect_has(error.message(), "camembert, roberta, xlm-roberta");
  expect_has(error.fix(), R"("roberta")");
}

TEST(PublishedModel, NothingIsDownloaded) {
  const Error error = input_error([] { config_from("bert-base-uncased"); });
  expect_has(error.message(), "models are not downloaded");
  expect_has(error.fix(), "hf download bert-base-uncased");
}

TEST(PublishedModel, APointerOfGitLfsIsNamed) {
  const PublishedCopy model("gpt2");
  write_bytes(model.path + "/model.safetensors",
              "version https://git-lfs.github.com/spec/v1\noid sha256:" + std::string(64, 'a') +
                  "\nsize 12345\n");
  expect_has(input_error([&] { config_from(model.path); }).message(), "Git LFS");
}

}  // namespace
}  // namespace concertina
