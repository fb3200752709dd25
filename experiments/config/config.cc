#include "experiments/config/config.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <limits>

#include "core/error.h"
#include "core/number_text.h"
#include "core/precision.h"
#include "experiments/config/config_keys.h"
#include "experiments/config/config_toml.h"
#include "experiments/config/schedule_file.h"
#include "io/datasets/dataset.h"
#include "models/lr_schedule.h"
#include "models/model.h"
#include "models/optimizer.h"
#include "parallel/plan/reduction_tree.h"

namespace concertina {
namespace {

std::vector<int> divisors(int n) {
  std::vector<int> result;
  for (int d = 1; d <= n; ++d)
    if (n % d == 0) result.push_back(d);
  return result;
}

/// "1, 2, 4, ..." with at most 24 numbers: the ends are kept.
std::string list_numbers(const std::vector<int>& numbers) {
  constexpr std::size_t kMost = 24;
  if (numbers.size() <= kMost) return fmt::format("{}", fmt::join(numbers, ", "));
  const auto half = static_cast<std::ptrdiff_t>(kMost / 2);
  return fmt::format("{}, ..., {}", fmt::join(numbers.begin(), numbers.begin() + half, ", "),
                     fmt::join(numbers.end() - half, numbers.end(), ", "));
}

void require_divides(const RunConfig& config, std::string_view part_key, int part,
                     std::string_view whole_key, int whole) {
  if (whole % part == 0) return;
  throw_input(fmt::format("{} = {} does not divide {} = {}", part_key, part, whole_key, whole),
              config.where(part_key),
              fmt::format("{} = one of {}", part_key, list_numbers(divisors(whole))));
}

void check_names(const RunConfig& config) {
  const std::string& name = config.run.name;
  if (name.empty() || name == "." || name == ".." || name.find('/') != std::string::npos)
    throw_input(fmt::format("run.name = '{}' cannot name a directory", name),
                config.where("run.name"), "a name without '/', such as \"first\"");
  if (config.run.dir.empty())
    throw_input("run.dir is empty", config.where("run.dir"), "a directory, such as \"runs\"");
}

[[noreturn]] void refuse_idle_key(const RunConfig& config, std::string_view name,
                                  const std::string& why, std::string fix) {
  throw_input(
      fmt::format("{} = {} has no effect: {}", name, value_text(*find_key(name), config), why),
      config.where(name), std::move(fix));
}

/// Keys that data of this format does not read.
void check_keys_of_data(const RunConfig& config) {
  const std::span<const std::string_view> own = find_format(config.data.format).keys;
  for (const auto& [name, format] : dataset_formats())
    for (const std::string_view key : format.keys) {
      if (std::ranges::find(own, key) != own.end() || is_default(*find_key(key), config)) continue;
      std::vector<std::string_view> readers;
      for (const auto& [other, reader] : dataset_formats())
        if (std::ranges::find(reader.keys, key) != reader.keys.end()) readers.push_back(other);
      refuse_idle_key(config, key, fmt::format("data.format is \"{}\"", config.data.format),
                      fmt::format("data.format = {}{}", readers.size() > 1 ? "one of " : "",
                                  fmt::join(readers, ", ")));
    }
}

/// Keys that another format reads are as likely forgotten as meant.
void check_data(const RunConfig& config) {
  const DataSection& data = config.data;
  const std::string wanted = files_key(config);
  for (const auto& [key, files] : {std::pair{"data.text", &data.text},
                                   {"data.files", &data.files},
                                   {"data.validation_files", &data.validation_files},
                                   {"data.test_files", &data.test_files}}) {
    for (const std::string& file : *files)
      if (file.empty())
        throw_input(fmt::format("{} holds an empty path", key), config.where(key),
                    "paths or globs of files");
    const bool of_all = files == &data.validation_files || files == &data.test_files;
    if (!files->empty() && !of_all && key != wanted)
      throw_input(fmt::format("{} is without effect: data.format = \"{}\" reads {}", key,
                              data.format, wanted),
                  config.where(key), fmt::format("{} = the files, or another data.format", wanted));
  }
}

void check_batch(const RunConfig& config) {
  const BatchSection& batch = config.batch;
  require_divides(config, "batch.microbatches", batch.microbatches, "batch.global", batch.global);
  if (config.numerics.leaves > 0)
    require_divides(config, "numerics.leaves", config.numerics.leaves, "batch.microbatches",
                    batch.microbatches);
  const std::int64_t rows =
      std::int64_t{batch.global / batch.microbatches} * std::int64_t{config.model.context};
  if (rows > std::numeric_limits<std::int32_t>::max())
    throw_input(fmt::format("one microbatch has {} tokens, more than 2^31 - 1", rows),
                config.where("batch.microbatches"), "more microbatches or a shorter context");
}

/// The short form and the long form exclude each other. What a layout itself must fulfil is checked
/// where model and world size are known (parallel/plan/layout.h).
void check_layout(const RunConfig& config) {
  if (config.parallel.layout.pipelines.empty()) return;
  for (const auto& [key, value] :
       {std::pair{"parallel.pp", config.parallel.pp}, {"parallel.dp", config.parallel.dp}})
    if (value != 0)
      throw_input(fmt::format("both {} and parallel.layout say where the stages are", key),
                  config.where(key), fmt::format("leave out parallel.layout, or set {} = 0", key));
}

/// The keys of [freeze] for a model of `layers` layers, at most `most` of which can be frozen.
FreezeRules rules_for(const RunConfig& config, int layers, int most) {
  const FreezeSection& freeze = config.freeze;
  const int bound = freeze.max == 0 ? most : std::min(freeze.max, most);
  FreezeRules rules;
  try {
    rules = make_freeze_rules(freeze.policy, freeze.options, layers, bound);
  } catch (const Error& error) {  // it knows keys, not where they were set
    throw_input(error.message(), config.where(error.where()), error.fix());
  }
  const auto name = std::find(kUnfreezeNames.begin(), kUnfreezeNames.end(), freeze.unfreeze);
  CONCERTINA_CHECK(name != kUnfreezeNames.end(), "freeze.unfreeze = {}", freeze.unfreeze);
  rules.unfreeze = static_cast<Unfreeze>(name - kUnfreezeNames.begin());
  rules.rise = freeze.unfreeze_rise;
  rules.steps = lr_steps(config);
  return rules;
}

/// "freeze.start, freeze.end"; "none" where the policy has no options.
std::string option_keys_of(std::string_view policy) {
  std::vector<std::string_view> names;
  for (const Key& key : config_keys())
    if (key.chosen_by == "freeze.policy" && key.entry == policy) names.push_back(key.name);
  return names.empty() ? "none" : fmt::format("{}", fmt::join(names, ", "));
}

/// Keys of a policy where nobody has chosen one: as likely forgotten as meant. A base config may
/// have them for others that choose one; it then says "none" itself.
void check_policy_is_chosen(const RunConfig& config) {
  if (config.freeze.policy != "none" || config.origins.contains("freeze.policy")) return;
  for (const Key& key : config_keys())
    if (key.name.starts_with("freeze.") && key.name != "freeze.units" && !is_default(key, config))
      throw_input(fmt::format("{} = {} has no effect: freeze.policy is not set", key.name,
                              value_text(key, config)),
                  config.where(key.name),
                  fmt::format("freeze.policy = one of {}; \"none\" where nothing is to freeze",
                              fmt::join(names_of(freeze_policies()), ", ")));
}

/// Keys of a chosen policy that are without effect beside the others.
void check_freeze_bounds(const RunConfig& config) {
  const FreezeSection& freeze = config.freeze;
  if (freeze.policy == "none") return;
  if (freeze.max > config.model.layers)
    throw_input(
        fmt::format("freeze.max = {}, but the model has {}", freeze.max,
                    counted(config.model.layers, "layer")),
        config.where("freeze.max"),
        fmt::format("at most {}, or 0: all, as long as something trains", config.model.layers));
  const bool said_never = freeze.unfreeze == "never" && config.origins.contains("freeze.unfreeze");
  const Key& rise = *find_key("freeze.unfreeze_rise");
  if (freeze.unfreeze != "loss" && !said_never && !is_default(rise, config))
    throw_input(fmt::format("{} = {} has no effect: freeze.unfreeze is \"{}\"", rise.name,
                            value_text(rise, config), freeze.unfreeze),
                config.where(rise.name), "freeze.unfreeze = \"loss\"");
}

void check_freeze(const RunConfig& config) {
  const std::string& policy = config.freeze.policy;
  if (policy != "none" && config.freeze.units > 0)
    throw_input(fmt::format("freeze.units = {} and freeze.policy = \"{}\" both say what is frozen",
                            config.freeze.units, policy),
                config.where("freeze.units"), "freeze.units = 0, or freeze.policy = \"none\"");
  check_policy_is_chosen(config);
  for (const Key& key : config_keys())
    if (policy != "none" && key.chosen_by == "freeze.policy" && !applies(key, config) &&
        !is_default(key, config))
      throw_input(fmt::format("{} is an option of freeze.policy = \"{}\", not of \"{}\"", key.name,
                              key.entry, policy),
                  config.where(key.name),
                  fmt::format("freeze.policy = \"{}\"; the options of {} are: {}", key.entry,
                              policy, option_keys_of(policy)));
  check_freeze_bounds(config);
  const FreezeRules rules = rules_for(config, config.model.layers, config.model.layers);
  if (rules.policy->plan_skips == nullptr) return;
  for (const auto& [key, set] : {std::pair{"freeze.max", config.freeze.max != 0},
                                 {"freeze.unfreeze", config.freeze.unfreeze != "never"}})
    if (set)
      throw_input(fmt::format("{} is of frozen layers, and freeze.policy = \"{}\" freezes none",
                              key, policy),
                  config.where(key), fmt::format("no {}, or another freeze.policy", key));
}

/// Keys of a layout policy where nobody has chosen one, or which it does not read. A base config
/// may have them for others that choose a policy; it then says "none" itself, as does a run that is
/// to change no more.
void check_elastic(const RunConfig& config) {
  const std::string& policy = config.elastic.policy;
  if (policy == "none" && config.origins.contains("elastic.policy")) return;
  for (const Key& key : config_keys()) {
    if (!key.name.starts_with("elastic.") || key.name == "elastic.policy" ||
        is_default(key, config))
      continue;
    if (policy == "none")
      refuse_idle_key(
          config, key.name, "elastic.policy is not set",
          fmt::format("elastic.policy = one of {}; \"none\" where no layout is to change",
                      fmt::join(names_of(layout_policies()), ", ")));
    const bool of_all = key.name == "elastic.every" || key.name == "elastic.batch";
    if (!of_all &&
        !lookup(layout_policies(), policy, "layout policy", "elastic.policy").has_options)
      refuse_idle_key(config, key.name,
                      fmt::format("elastic.policy = \"{}\" does not read it", policy),
                      fmt::format("no {}, or elastic.policy = \"predicted\"", key.name));
  }
}

/// A directory for files that nobody has asked for.
void check_cache_dir(const RunConfig& config) {
  if (config.cache.dir.empty() || config.cache.disk.bytes > 0 ||
      config.origins.contains("cache.disk"))
    return;
  refuse_idle_key(config, "cache.dir", "cache.disk is not set",
                  "cache.disk = a size, such as \"1 GiB\"; 0 where nothing is to be kept on disk");
}

std::optional<Variation> data_varies(const RunConfig& config) {
  const DatasetFormat& format = find_format(config.data.format);
  if (format.varies == nullptr) return std::nullopt;
  return format.varies(
      {.windows = config.data.windows, .crop = config.data.crop, .flip = config.data.flip});
}

/// What is kept of a sample is of use only when the same sample comes again, and does not depend on
/// the samples beside it.
void check_cache(const RunConfig& config) {
  const bool alone = config.batch.global == config.batch.microbatches;
  for (const auto& [key, size] :
       {std::pair{"cache.memory", config.cache.memory}, {"cache.disk", config.cache.disk}}) {
    if (size.bytes == 0) continue;
    if (const auto varies = data_varies(config))
      throw_input(
          fmt::format("{} = {} with {}: no sample comes again", key, to_toml(size), varies->now),
          config.where(key), fmt::format("{}, or {} = 0", varies->instead, key));
    if (find_precision(config.numerics.compute)->products == Products::fp8 && !alone)
      throw_input(fmt::format("{} = {} with numerics.compute = \"{}\": its scales depend on all "
                              "samples of a microbatch, which has others in each epoch",
                              key, to_toml(size), config.numerics.compute),
                  config.where(key),
                  fmt::format("numerics.compute = \"bf16\", batch.microbatches = {} (of one sample "
                              "each), or {} = 0",
                              config.batch.global, key));
  }
}

/// A library of NVIDIA's is asked for where there is no GPU.
void check_gpu_library(const RunConfig& config, std::string_view key, std::string_view value,
                       std::string_view asks, std::string_view library) {
  if (value != asks || config.run.device == "cuda") return;
  throw_input(fmt::format("{} = \"{}\" with run.device = \"{}\": {} is for GPUs", key, value,
                          config.run.device, library),
              config.where(key), fmt::format("{} = \"auto\"", key));
}

template <class T>
EntryOptions usual_options(std::span<const Entry<T>> table) {
  EntryOptions options;
  for (const Entry<T>& entry : table)
    options.emplace(std::string(entry.name), with_usual(entry.value.options));
  return options;
}

}  // namespace

std::string RunConfig::where(std::string_view key) const {
  const auto origin = origins.find(key);
  if (origin == origins.end()) return fmt::format("{} (default)", key);
  return fmt::format("{}: {}", origin->second, key);
}

bool RunConfig::operator==(const RunConfig& other) const {
  return run == other.run && model == other.model && data == other.data && batch == other.batch &&
         freeze == other.freeze && elastic == other.elastic && cache == other.cache &&
         optimizer == other.optimizer && lr == other.lr && parallel == other.parallel &&
         numerics == other.numerics && checkpoint == other.checkpoint && eval == other.eval &&
         generate == other.generate && log == other.log;
}

std::string run_directory(const RunConfig& config) {
  return fmt::format("{}/{}", config.run.dir, config.run.name);
}

std::string checkpoint_directory(const RunConfig& config) {
  if (!config.checkpoint.dir.empty()) return config.checkpoint.dir;
  return run_directory(config) + "/checkpoints";
}

std::string cache_directory(const RunConfig& config) {
  return config.cache.dir.empty() ? run_directory(config) : config.cache.dir;
}

RunConfig with_absolute_paths(RunConfig config) {
  const auto make_absolute = [](std::string& path) {
    if (path.empty() || path.front() == '~') return;  // a glob of the user's home
    path = std::filesystem::absolute(path).lexically_normal().string();
  };
  DataSection& data = config.data;
  for (auto* files : {&data.text, &data.files, &data.validation_files, &data.test_files})
    for (std::string& file : *files) make_absolute(file);
  if (names_tokenizer_files(data.tokenizer)) make_absolute(data.tokenizer);
  make_absolute(config.model.from);
  make_absolute(config.checkpoint.dir);
  make_absolute(config.cache.dir);
  if (is_schedule_file(config.parallel.schedule)) make_absolute(config.parallel.schedule);
  return config;
}

int reduction_leaves(const RunConfig& config) {
  if (config.numerics.leaves > 0) return config.numerics.leaves;
  return default_leaves(config.batch.microbatches);
}

EntryOptions family_options() {
  return usual_options(models());
}

EntryOptions optimizer_options() {
  return usual_options(optimizers());
}

EntryOptions lr_options() {
  return usual_options(lr_schedules());
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

bool names_data(std::string_view key) {
  return key == "data.text" || key == "data.files" || key == "data.validation_files" ||
         key == "data.test_files";
}

std::int64_t lr_steps(const RunConfig& config) {
  return config.lr.steps > 0 ? config.lr.steps : config.run.steps;
}

FreezeRules freeze_rules(const RunConfig& config, const ModelSpec& model) {
  const int layers = static_cast<int>(model.layer_ends.size());
  if (layers == 0 && config.freeze.policy != "none")
    throw_input(fmt::format("freeze.policy = \"{}\" freezes layers, and model.family = \"{}\" has "
                            "none",
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

/// Options of an entry that is not chosen: as likely a slip as meant.
void check_options(const RunConfig& config) {
  for (const Key& key : config_keys()) {
    if (key.chosen_by == "freeze.policy" || applies(key, config) || is_default(key, config))
      continue;
    throw_input(fmt::format("{} = {} has no effect: {} is {}", key.name, value_text(key, config),
                            key.chosen_by, value_text(*find_key(key.chosen_by), config)),
                config.where(key.name), fmt::format("{} = \"{}\"", key.chosen_by, key.entry));
  }
}

void validate(const RunConfig& config) {
  check_names(config);
  check_options(config);
  check_data(config);
  check_keys_of_data(config);
  require_divides(config, "model.heads", config.model.heads, "model.width", config.model.width);
  check_batch(config);
  check_layout(config);
  check_freeze(config);
  check_elastic(config);
  check_cache(config);
  check_cache_dir(config);
  check_gpu_library(config, "parallel.transport", config.parallel.transport, "nccl", "NCCL");
  check_gpu_library(config, "numerics.attention", config.numerics.attention, "cudnn", "cuDNN");
}

}  // namespace concertina
