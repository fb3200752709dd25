#include "models/model.h"

#include <algorithm>
#include <cmath>

#include "core/rng.h"
#include "model_table.h"
#include "models/recompute.h"

namespace concertina {
namespace {

float element(const BucketTensor& tensor, const Rng& rng, std::size_t index) {
  switch (tensor.init.kind) {
    case Init::Kind::zeros:
      return 0;
    case Init::Kind::ones:
      return 1;
    case Init::Kind::normal:
      break;
  }
  return tensor.init.std * rng.normal(static_cast<std::uint32_t>(index >> 32),
                                      static_cast<std::uint32_t>(tensor.parameter),
                                      static_cast<std::uint32_t>(tensor.unit),
                                      static_cast<std::uint32_t>(index));
}

}  // namespace

void initialize(const Bucket& bucket, std::uint64_t seed, std::size_t begin, std::span<float> out) {
  const Rng rng(seed, Purpose::init);
  const std::size_t end = begin + out.size();
  std::fill(out.begin(), out.end(), 0.0F);
  for (const BucketTensor& tensor : bucket.tensors) {
    const std::size_t from = std::max(begin, tensor.offset);
    const std::size_t to = std::min(end, tensor.offset + tensor.count);
    for (std::size_t at = from; at < to; ++at)
      out[at - begin] = element(tensor, rng, at - tensor.offset);
  }
}

namespace {

constexpr double kMostDropped = 0x1p34;  // counters of core/rng.h

/// `elements` is the size of one sample's mask.
void check_dropout(const char* key, double share, double elements, const char* smaller) {
  if (share > 0 && elements > kMostDropped)
    throw_input(
        fmt::format(
            "dropout supports at most {:.0f} elements per sample, but this model has {:.0f}",
            kMostDropped, elements),
        key, smaller);
}

}  // namespace

CONCERTINA_REGISTRY_IN(CONCERTINA_MODELS, Family, families, models)

std::unique_ptr<Model> make_model(std::string_view family, const ModelConfig& config) {
  const Family& found = lookup(models(), family, "model family", "model.family");
  ModelConfig complete = config;
  complete.options = with_defaults(found.options, config.options);
  if (complete.task == "auto") complete.task = found.default_task;
  return found.make(complete);
}

void check_sizes(const ModelConfig& config, bool heads_divide) {
  if (config.samples < 1)
    throw_input("a microbatch has no samples", "batch.microbatches", "a divisor of batch.global");
  if (heads_divide && config.width % config.heads != 0)
    throw_input(fmt::format("model.heads = {} does not divide model.width = {}", config.heads,
                            config.width),
                "model.heads", "a divisor of the width");
  const auto context = static_cast<double>(config.context);
  check_dropout("model.dropout", config.dropout, context * static_cast<double>(config.width),
                "0, or a smaller width or context");
  const auto mask_row = static_cast<double>(AttentionShape{.tokens = config.context}.mask_row());
  check_dropout("model.attention_dropout", config.attention_dropout,
                static_cast<double>(config.heads) * context * mask_row,
                "0, or fewer heads or a smaller context");
  const double rows = static_cast<double>(config.samples) * static_cast<double>(config.context);
  const double columns = static_cast<double>(std::max(config.vocab, 4 * config.width));
  if (rows * columns > 0x1p46)
    throw_input(fmt::format("one microbatch of {} samples x {} tokens has an activation of {:.3g} "
                            "elements",
                            config.samples, config.context, rows * columns),
                "batch.microbatches", "more microbatches, or a smaller batch or context");
}

float residual_std_of(const ModelConfig& config, float std) {
  return static_cast<float>(std / std::sqrt(2.0 * static_cast<double>(config.layers)));
}

std::int64_t gated_hidden(std::int64_t width) {
  constexpr std::int64_t kRun = 32;
  return (8 * width + 3 * kRun - 1) / (3 * kRun) * kRun;
}

UnitShape unit_shape(const ModelConfig& config) {
  const bool decodes = config.decoded > 0;
  return {config.samples,
          decodes ? config.decoded : config.context,
          config.width,
          config.precision.storage,
          config.precision.products,
          config.dropout,
          config.label_smoothing,
          config.attention_dropout,
          config.packed && !decodes,
          config.lora,
          decodes ? config.context : 0,
          config.distillation};
}

std::unique_ptr<Unit> Model::make_unit(int index, Backend& backend) const {
  CONCERTINA_CHECK(0 <= index && index < std::ssize(makers_), "unit {} of {}", index,
                   makers_.size());
  return makers_[static_cast<std::size_t>(index)](backend);
}

Graph Model::describe(bool untied) const {
  UnitSpec first = spec_.units.front();
  if (untied)
    for (ParameterSpec& parameter : first.parameters) parameter.shared.clear();
  GraphBuilder graph;
  std::string x;
  for (std::size_t u = 0; u < describers_.size(); ++u) {
    const UnitSpec& unit = u == 0 ? first : spec_.units[u];
    if (!describers_[u])
      throw_input(fmt::format("unit {} cannot be exported as a graph", unit.name), "model.family",
                  "a family whose units all define UnitPlan::describe");
    graph.enter(unit);
    x = describers_[u](graph, x);
  }
  return std::move(graph).build();
}

ModelPlan::ModelPlan(ModelConfig config) : config_(std::move(config)) {
  ModelSpec& spec = model_.spec_;
  spec.boundary_bytes = unit_shape(config_).activation_bytes();
  spec.activation = config_.precision.storage;
  spec.tokens_per_sample = unit_shape(config_).tokens;
  spec.vocabulary = config_.vocab;
  spec.samples = config_.samples;
  spec.unties = config_.unties;
}

void ModelPlan::add(std::string_view kind, UnitPlan unit) {
  unit.spec.name = kind;
  model_.spec_.units.push_back(std::move(unit.spec));
  model_.makers_.push_back(std::move(unit.make));
  model_.describers_.push_back(std::move(unit.describe));
}

void ModelPlan::end_layer() {
  model_.spec_.layer_ends.push_back(static_cast<int>(model_.spec_.units.size()));
}

std::unique_ptr<Model> ModelPlan::build() && {
  std::vector<UnitSpec>& units = model_.spec_.units;
  const std::size_t digits = std::max<std::size_t>(3, std::to_string(units.size() - 1).size());
  for (std::size_t u = 0; u < units.size(); ++u)
    units[u].name = fmt::format("{:0{}}.{}", u, digits, units[u].name);
  if (is_adapted(model_.spec_)) freeze_base(model_.spec_);
  freeze_tensors(model_.spec_, config_.untrained);
  choose_recompute(model_.spec_, config_.recompute);
  return std::make_unique<Model>(std::move(model_));
}

}  // namespace concertina
