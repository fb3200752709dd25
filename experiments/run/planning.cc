#include "experiments/run/planning.h"

#include <fmt/format.h>

#include "core/error.h"
#include "experiments/config/schedule_file.h"
#include "io/datasets/mixture.h"
#include "models/optimizer.h"
#include "models/task.h"

namespace concertina {

Precision precision_of(const RunConfig& config) {
  if (const auto found = find_precision(config.numerics.compute)) return *found;
  throw_input(fmt::format("numerics.compute = \"{}\" is unknown", config.numerics.compute),
              config.where("numerics.compute"), "one of: " + list_names(kPrecisions));
}

namespace {

bool wants_reference(const RunConfig& config) {
  return lookup(freeze_policies(), config.freeze.policy, "freeze policy", "freeze.policy")
      .wants_reference;
}

LoraSpec lora_of(const LoraSection& lora) {
  return {{lora.rank, lora.rank == 0 ? 1 : static_cast<float>(lora.alpha / lora.rank)},
          lora.rank == 0 ? std::vector<std::string>() : lora.targets};
}

}  // namespace

ModelConfig model_config_of(const RunConfig& config) {
  const ModelSection& m = config.model;
  const bool masks = task_of(m.family, m.task).masks;
  return {.layers = m.layers,
          .width = m.width,
          .heads = m.heads,
          .context = m.context,
          .vocab = m.vocab,
          .samples = config.batch.global / config.batch.microbatches,
          .precision = precision_of(config),
          .dropout = m.dropout,
          .attention_dropout = m.attention_dropout,
          .label_smoothing = m.label_smoothing,
          .recompute = config.parallel.recompute,
          .task = m.task,
          .classes = m.classes,
          .targets = masks && !config.every_logit ? masked_count(m.context) : 0,
          .unties = config.freeze.tied == "trains",
          .init_std = m.init_std,
          .untrained = config.freeze.tensors,
          .packed = config.data.documents == "packed",
          .lora = lora_of(config.lora),
          .distillation = {distills(config) ? config.distill.weight : 0,
                           config.distill.temperature},
          .options = m.options.at(m.family)};
}

std::unique_ptr<Model> model_of(const RunConfig& config) {
  return make_model(config.model.family, model_config_of(config));
}

std::unique_ptr<Optimizer> optimizer_of(const RunConfig& config) {
  const OptimizerSection& o = config.optimizer;
  return make_optimizer(o.name, {.beta1 = o.betas[0],
                                 .beta2 = o.betas[1],
                                 .eps = o.eps,
                                 .weight_decay = o.weight_decay,
                                 .l1 = o.l1,
                                 .keep_zeros = o.keep_zeros,
                                 .ema = o.ema,
                                 .options = o.options.at(o.name)});
}

std::int64_t tokens_of_step(const RunConfig& config) {
  return config.batch.global * model_of(config)->spec().tokens_per_sample;
}

namespace {

std::vector<std::vector<double>> update_flops_of(const ModelSpec& model, const Optimizer& rule) {
  std::vector<std::vector<double>> flops(model.units.size());
  for (std::size_t u = 0; u < model.units.size(); ++u)
    for (const ParameterSpec& parameter : model.units[u].parameters)
      flops[u].push_back(rule.update_flops(parameter));
  return flops;
}

}  // namespace

Job job_of(const RunConfig& config) {
  const std::unique_ptr<Optimizer> rule = optimizer_of(config);
  const ModelSpec model = model_of(config)->spec();
  return {.model = model,
          .microbatches = config.batch.microbatches,
          .leaves = reduction_leaves(config),
          .seed = static_cast<std::uint64_t>(config.run.seed),
          .keeps_frozen_state = config.freeze.unfreeze != "never",
          .keeps_reference = wants_reference(config),
          .whole_tensors = rule->whole_tensors(),
          .update_flops = update_flops_of(model, *rule)};
}

std::shared_ptr<const Tokenizer> tokenizer_of(const RunConfig& config) {
  return make_tokenizer(config.data.tokenizer, config.where("data.tokenizer"));
}

DataOptions data_options(const RunConfig& config, std::shared_ptr<const Tokenizer> tokenizer) {
  const DataSection& data = config.data;
  const std::string documents = documents_of(config);
  return {
      .format = data.format,
      .files = data_files(config),
      .validation_files = data.validation_files,
      .test_files = data.test_files,
      .tokenizer = std::move(tokenizer),
      .validation = data.validation,
      .test = data.test,
      .most_overlap = data.most_overlap,
      .tokens_per_sample = config.model.context,
      .labelled = documents == "alone" && !task_of(config.model.family, config.model.task).masks,
      .documents = documents,
      .class_names = data.classes,
      .targets = task_of(config.model.family, config.model.task).targets,
      .vocabulary = config.model.vocab,
      .options = data.options};
}

namespace {

/// The entries without their common folder.
std::vector<std::string> names_of_sources(std::vector<std::string> entries) {
  std::size_t common = entries[0].rfind('/') + 1;  // 0: no common folder
  for (const std::string& entry : entries)
    while (!entry.starts_with(entries[0].substr(0, common)))
      common = common < 2 ? 0 : entries[0].rfind('/', common - 2) + 1;
  for (std::string& entry : entries) entry.erase(0, common);
  return entries;
}

}  // namespace

std::shared_ptr<const Dataset> open_sources(
    const RunConfig& config, const std::shared_ptr<const Tokenizer>& tokenizer,
    const std::function<std::shared_ptr<const Dataset>(std::shared_ptr<const Dataset>)>& finish) {
  const DataOptions all = data_options(config, tokenizer);
  if (config.data.weights.empty()) return finish(open_dataset(all));
  const std::vector<std::string> names = names_of_sources(all.files);
  std::vector<MixSource> sources;
  for (std::size_t s = 0; s < names.size(); ++s) {
    DataOptions one = all;
    one.files = {all.files[s]};
    if (!all.validation_files.empty()) one.validation_files = {all.validation_files[s]};
    if (!all.test_files.empty()) one.test_files = {all.test_files[s]};
    sources.push_back({names[s], finish(open_dataset(one)), config.data.weights[s]});
  }
  return std::make_shared<const Mixture>(std::move(sources));
}

Request request_of(const RunConfig& config, int world, std::vector<int> hosts) {
  const ParallelSection& parallel = config.parallel;
  return {.world = world,
          .spare = parallel.spare,
          .frozen_units = config.freeze.units,
          .pp = parallel.pp,
          .dp = parallel.dp,
          .chunks = parallel.chunks,
          .layout = parallel.layout,
          .schedule = parallel.schedule,
          .file = own_schedule(parallel.schedule),
          .partition = parallel.partition,
          .overlap = parallel.overlap,
          .exchange = {parallel.exchange, std::move(hosts)}};
}

Assignment assignment_of(const RunConfig& config, const Job& job, int world,
                         const std::string& launch, std::vector<int> hosts) {
  Request request = request_of(config, world, std::move(hosts));
  try {
    return assign(job, request);
  } catch (const Error& error) {
    if (launch.empty()) throw;
    request.world = ranks_asked(request);
    if (request.world == world) throw;
    request.exchange.hosts.clear();
    try {
      assign(job, request);
    } catch (const Error&) {
      throw error;
    }
    throw Error(
        error.code(), error.message(), error.where(),
        fmt::format("{}; or {}", fmt::format(fmt::runtime(launch), request.world), error.fix()));
  }
}

}  // namespace concertina
