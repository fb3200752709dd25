#include "experiments/config/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "core/error.h"
#include "core/precision.h"
#include "core/text/number_text.h"
#include "experiments/config/config_keys.h"
#include "experiments/config/config_toml.h"
#include "io/datasets/dataset.h"
#include "io/run_files.h"
#include "models/lr_schedule.h"
#include "models/model.h"
#include "models/optimizer.h"
#include "models/task.h"
#include "parallel/plan/reduction_tree.h"

namespace concertina {
namespace {

/// Whether the number of layers is not known until model.from is read.
bool layers_follow(const RunConfig& config) {
  return !config.model.from.empty() && !config.origins.contains("model.layers");
}

std::vector<int> divisors(int n) {
  std::vector<int> result;
  for (int d = 1; d <= n; ++d)
    if (n % d == 0) result.push_back(d);
  return result;
}

/// Lists at most 24 numbers, omitting the middle: "1, 2, 4, ...".
std::string list_numbers(const std::vector<int>& numbers) {
  constexpr std::size_t kMost = 24;
  if (numbers.size() <= kMost) return fmt::format("{}", fmt::join(numbers, ", "));
  const auto half = static_cast<std::ptrdiff_t>(kMost / 2);
  return fmt::format("{}, ..., {}", fmt::join(numbers.begin(), numbers.begin() + half, ", "),
                     fmt::join(numbers.end() - half, numbers.end(), ", "));
}

void check_divides(const Key& key, const RunConfig& config) {
  const auto number = [&](const Key& one) { return *value_if<int>(one, config); };
  const int part = number(key), whole = number(*find_key(key.divides));
  if (part == 0 || whole % part == 0) return;
  throw_input(fmt::format("{} = {} does not divide {} = {}", key.name, part, key.divides, whole),
              config.where(key.name),
              fmt::format("{} = one of {}", key.name, list_numbers(divisors(whole))));
}

/// Suggests values of `chooser` that make `idle` take effect, and lists keys that take effect now.
std::string readers_text(const Key& idle, const Key& chooser, const RunConfig& config) {
  if (idle.readers.empty()) return fmt::format("{} = {}", chooser.name, expected(chooser));
  const std::string chosen = value_text(chooser, config);
  const std::string fix =
      idle.readers.size() == 1
          ? fmt::format("{} = \"{}\"", chooser.name, idle.readers.front())
          : fmt::format("{} = one of {}", chooser.name, fmt::join(idle.readers, ", "));
  if (is_off(chooser, config)) return fmt::format("{}; or {}", fix, chosen);
  std::vector<std::string_view> read;
  for (const Key& other : config_keys())
    if (other.chosen_by == chooser.name && applies(other, config)) read.push_back(other.name);
  return read.empty() ? fix : fmt::format("{}; {} reads {}", fix, chosen, fmt::join(read, ", "));
}

/// A key without effect is probably a mistake, unless a base config sets it and the config that
/// extends the base turns off its chooser.
void check_effect(const Key& key, const RunConfig& config) {
  const Key* const idle = unread(key, config);
  if (idle == nullptr || is_default(key, config)) return;
  const Key& chooser = *find_key(idle->chosen_by);
  const bool off = is_off(chooser, config);
  if (off && config.origins.contains(chooser.name)) return;
  throw_input(fmt::format("{} = {} has no effect: {} is {}", key.name, value_text(key, config),
                          chooser.name, off ? "not set" : value_text(chooser, config)),
              config.where(key.name), readers_text(*idle, chooser, config));
}

bool names_directory(const std::string& name) {
  return !name.empty() && name != "." && name != ".." && name.find('/') == std::string::npos;
}

std::int64_t microbatch_tokens(const RunConfig& config) {
  return std::int64_t{config.batch.global / config.batch.microbatches} * config.model.context;
}

void check_files(const RunConfig& config) {
  for (const Key& key : config_keys())
    if (key.role == KeyRole::files)
      for (const std::string& file : *value_if<std::vector<std::string>>(key, config))
        if (file.empty())
          throw_input(fmt::format("{} contains an empty path", key.name), config.where(key.name),
                      "file paths or globs");
}

/// Returns the result of `check`. If it throws, adds the place where the key was set.
template <class Check>
auto with_places(const RunConfig& config, const Check& check) try {
  return check();
} catch (const Error& error) {
  throw_input(error.message(), config.where(error.where()), error.fix());
}

/// The rules in [freeze] for a model with `layers` layers, of which at most `most` can be frozen.
FreezeRules rules_for(const RunConfig& config, int layers, int most) {
  const FreezeSection& freeze = config.freeze;
  const int bound = freeze.max == 0 ? most : std::min(freeze.max, most);
  FreezeRules rules = with_places(
      config, [&] { return make_freeze_rules(freeze.policy, freeze.options, layers, bound); });
  const auto name = std::find(kUnfreezeNames.begin(), kUnfreezeNames.end(), freeze.unfreeze);
  CONCERTINA_CHECK(name != kUnfreezeNames.end(), "freeze.unfreeze = {}", freeze.unfreeze);
  rules.unfreeze = static_cast<Unfreeze>(name - kUnfreezeNames.begin());
  rules.rise = freeze.unfreeze_rise;
  rules.after = freeze_after(config);
  rules.warms_up = freeze.after < 0;
  rules.steps = lr_steps(config);
  return rules;
}

/// Runs the freeze policy's checks on its options.
void check_policy(const RunConfig& config) {
  if (!layers_follow(config)) rules_for(config, config.model.layers, config.model.layers);
}

/// Runs the data format's checks on its options.
void check_format(const RunConfig& config) {
  const DatasetFormat& format = find_format(config.data.format);
  if (format.check != nullptr) with_places(config, [&] { format.check(config.data.options); });
}

/// Rows of a table are separate samples for tasks with labels; text documents can be joined.
void check_documents(const RunConfig& config) {
  const bool causal = is_causal_lm(config), alone = documents_of(config) == "alone";
  const bool masks = task_of(config.model.family, config.model.task).masks;
  const bool packed = config.data.documents == "packed";
  if (packed && causal && config.run.device == "cuda")
    throw_input("packed documents are not supported on a GPU", config.where("data.documents"),
                "run.device = \"cpu\", or data.documents = \"joined\"");
  if (config.data.documents == "auto" || !applies(*find_key("data.documents"), config) ||
      (packed ? causal : masks || causal != alone))
    return;
  throw_input(
      fmt::format("data.documents = \"{}\" cannot be used with model.task = \"{}\"",
                  config.data.documents, config.model.task),
      config.where("data.documents"),
      causal || (packed && masks) ? "data.documents = \"joined\"" : "data.documents = \"alone\"");
}

/// Each entry in the file list is a source.
void check_weights(const RunConfig& config) {
  const std::size_t count = config.data.weights.size();
  if (count == 0) return;
  const std::string own = files_key(config);
  for (const auto& [key, files] : {std::pair{own, data_files(config)},
                                   {"data.validation_files", config.data.validation_files},
                                   {"data.test_files", config.data.test_files}})
    if (files.size() != count && (key == own || !files.empty()))
      throw_input(fmt::format("data.weights has {} numbers, but {} has {} entries", count, key,
                              files.size()),
                  config.where("data.weights"),
                  fmt::format("one weight per file or glob of {}, in the same order", key));
  if (config.cache.memory.bytes > 0 || config.cache.disk.bytes > 0)
    throw_input("weighted sources cannot be cached", config.where("data.weights"),
                "remove data.weights, or set cache.memory = 0 and cache.disk = 0");
}

std::optional<Variation> data_varies(const RunConfig& config) {
  if (config.data.views > 0) return std::nullopt;
  if (task_of(config.model.family, config.model.task).masks)
    return Variation{"model.task = \"masked-lm\"", ""};
  const DatasetFormat& format = find_format(config.data.format);
  if (format.varies == nullptr) return std::nullopt;
  return format.varies({.documents = documents_of(config), .options = config.data.options});
}

/// A cached sample is only useful if the same sample is repeated and does not depend on the other
/// samples of its batch.
void check_cache(const RunConfig& config) {
  const bool alone = config.batch.global == config.batch.microbatches;
  for (const auto& [key, size] :
       {std::pair{"cache.memory", config.cache.memory}, {"cache.disk", config.cache.disk}}) {
    if (size.bytes == 0) continue;
    if (const auto varies = data_varies(config))
      throw_input(fmt::format("{} = {} with {}: no sample is ever repeated", key, to_toml(size),
                              varies->now),
                  config.where(key),
                  fmt::format("data.views = 4 (samples repeat after 4 epochs){}{}, or {} = 0",
                              varies->instead.empty() ? "" : ", ", varies->instead, key));
    if (find_precision(config.numerics.compute)->products == Products::fp8 && !alone)
      throw_input(fmt::format("{} = {} with numerics.compute = \"{}\": its scales depend on all "
                              "samples of a microbatch, which differ in each epoch",
                              key, to_toml(size), config.numerics.compute),
                  config.where(key),
                  fmt::format("numerics.compute = \"bf16\", batch.microbatches = {} (of one sample "
                              "each), or {} = 0",
                              config.batch.global, key));
  }
}

template <class T>
EntryOptions default_options(std::span<const Entry<T>> table) {
  EntryOptions options;
  for (const Entry<T>& entry : table)
    options.emplace(std::string(entry.name), with_defaults(entry.value.options));
  return options;
}

}  // namespace

std::string RunConfig::where(std::string_view key) const {
  const auto origin = origins.find(key);
  if (origin == origins.end()) return fmt::format("{} (default)", key);
  return fmt::format("{}: {}", origin->second, key);
}

std::string run_directory(const RunConfig& config) {
  return fmt::format("{}/{}", config.run.dir, config.run.name);
}

std::string checkpoint_directory(const RunConfig& config) {
  if (!config.checkpoint.dir.empty()) return config.checkpoint.dir;
  return run_file(run_directory(config), kCheckpointFolder);
}

std::string cache_directory(const RunConfig& config) {
  return config.cache.dir.empty() ? run_directory(config) : config.cache.dir;
}

RunConfig with_absolute_paths(RunConfig config) {
  const auto make_absolute = [](std::string& path) {
    if (path.empty() || path.front() == '~') return;  // a glob in the user's home
    path = std::filesystem::absolute(path).lexically_normal().string();
  };
  for (const Key& key : config_keys()) {
    const KeyField field = key.field(config);
    const auto* const text = std::get_if<std::string*>(&field);
    if (text != nullptr && (key.is_path || (key.is_file != nullptr && key.is_file(**text))))
      make_absolute(**text);
    if (const auto* files = std::get_if<std::vector<std::string>*>(&field); key.is_path && files)
      for (std::string& file : **files) make_absolute(file);
  }
  return config;
}

int reduction_leaves(const RunConfig& config) {
  if (config.numerics.leaves > 0) return config.numerics.leaves;
  return default_leaves(config.batch.microbatches);
}

EntryOptions family_options() {
  return default_options(models());
}

EntryOptions optimizer_options() {
  return default_options(optimizers());
}

EntryOptions lr_options() {
  return default_options(lr_schedules());
}

std::uint64_t model_seed(const RunConfig& config) {
  return static_cast<std::uint64_t>(config.model.seed < 0 ? config.run.seed : config.model.seed);
}

std::uint64_t data_seed(const RunConfig& config) {
  return static_cast<std::uint64_t>(config.data.seed < 0 ? config.run.seed : config.data.seed);
}

std::string files_key(const RunConfig& config) {
  return std::string(find_format(config.data.format).files_key);
}

std::vector<std::string> data_files(const RunConfig& config) {
  return files_key(config) == "data.text" ? config.data.text : config.data.files;
}

std::string documents_of(const RunConfig& config) {
  if (config.data.documents != "auto") return config.data.documents;
  return is_causal_lm(config) ? "joined" : "alone";
}

bool is_causal_lm(const RunConfig& config) {
  return &task_of(config.model.family, config.model.task) == &find_task("causal-lm");
}

std::int64_t lr_steps(const RunConfig& config) {
  return config.lr.steps > 0 ? config.lr.steps : config.run.steps;
}

LrSchedule lr_schedule_of(const RunConfig& config, std::int64_t steps) {
  return make_lr_schedule(config.lr.schedule,
                          {config.optimizer.lr, steps, config.lr.warmup, config.lr.min,
                           config.lr.options.at(config.lr.schedule)});
}

std::int64_t freeze_after(const RunConfig& config) {
  if (config.freeze.after >= 0) return config.freeze.after;
  const FreezePolicy& policy =
      lookup(freeze_policies(), config.freeze.policy, "freeze policy", "freeze.policy");
  const bool waits =
      config.freeze.policy != "none" && !policy.says_when && policy.plan_skips == nullptr;
  return waits ? lr_schedule_of(config, lr_steps(config)).warmup() : 0;
}

FreezeRules freeze_rules(const RunConfig& config, const ModelSpec& model) {
  const int layers = static_cast<int>(model.layer_ends.size());
  if (layers == 0 && config.freeze.policy != "none")
    throw_input(fmt::format("freeze.policy = \"{}\", but model.family = \"{}\" has no layers",
                            config.freeze.policy, config.model.family),
                config.where("freeze.policy"), "freeze.policy = \"none\"");
  return rules_for(config, layers, most_frozen_layers(model));
}

LayoutOptions layout_options(const RunConfig& config) {
  const ElasticSection& elastic = config.elastic;
  return {.depth = elastic.depth,
          .replicas = elastic.replicas,
          .schedule = elastic.schedule,
          .least_gain = elastic.least_gain,
          .grows = elastic.batch == "grows"};
}

void validate(const RunConfig& config) {
  for (const Key& key : config_keys()) {
    check_effect(key, config);
    if (!key.divides.empty()) check_divides(key, config);
  }
#define RULE(holds, key, what, fix) \
  if (!(holds)) throw_input(what, config.where(key), fix);
#define CHECK(function) function(config);
#include "experiments/config/sections.inc"
}

}  // namespace concertina
