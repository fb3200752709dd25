#include "models/model.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <set>

#include "core/profile_backend.h"
#include "models/model_stage.h"
#include "tests/errors.h"
#include "tests/oracle_backend.h"

namespace concertina {
namespace {

const ModelConfig kSmall{
    .layers = 3, .width = 48, .heads = 4, .context = 20, .vocab = 65, .samples = 2};

std::int64_t parameters(const ModelSpec& spec) {
  std::int64_t count = 0;
  for (const Bucket& bucket : make_buckets(spec))
    for (const BucketTensor& tensor : bucket.tensors)
      count += static_cast<std::int64_t>(tensor.count);
  return count;
}

TEST(GptTest, HasGpt2sParameterCounts) {
  // https://huggingface.co/gpt2 and gpt2-xl: 124,439,808 and 1,557,611,200.
  const auto small =
      make_model("gpt", {.layers = 12, .width = 768, .heads = 12, .context = 1024, .vocab = 50257});
  EXPECT_EQ(parameters(small->spec()), 124439808);
  const auto xl = make_model(
      "gpt", {.layers = 48, .width = 1600, .heads = 25, .context = 1024, .vocab = 50257});
  EXPECT_EQ(parameters(xl->spec()), 1557611200);
}

TEST(GptTest, UnitsSortByNameAndTheTableIsTied) {
  for (const std::int64_t layers : {1, 3, 600}) {
    ModelConfig config = kSmall;
    config.layers = layers;
    const auto model = make_model("gpt", config);
    const auto& units = model->spec().units;
    ASSERT_EQ(std::ssize(units), 2 * layers + 2);
    for (std::size_t u = 1; u < units.size(); ++u) EXPECT_LT(units[u - 1].name, units[u].name);
    const auto buckets = make_buckets(model->spec());
    const auto tied = std::find_if(buckets.begin(), buckets.end(),
                                   [](const Bucket& bucket) { return bucket.name == "wte"; });
    ASSERT_NE(tied, buckets.end());
    EXPECT_EQ(tied->uses, (std::vector<int>{0, static_cast<int>(2 * layers + 1)}));
  }
}

TEST(GptTest, TheEmbeddingBelongsToTheFirstLayerAndTheHeadToNone) {
  const auto model = make_model("gpt", kSmall);
  EXPECT_EQ(model->spec().layer_ends, (std::vector{3, 5, 7}));
  // The final norm is trained even though the head shares the embedding's table.
  EXPECT_EQ(most_frozen_layers(model->spec()), 3);
}

TEST(GptTest, CostsKnowWhatIsFrozenOfTheHead) {
  for (const bool unties : {false, true}) {
    ModelSpec spec = make_model("gpt", kSmall)->spec();
    spec.unties = unties;
    const int last = static_cast<int>(spec.units.size()) - 1;
    for (int frozen = 0; frozen <= last; ++frozen) {
      double all = 0, trained = 0;
      for (const Bucket& bucket : make_buckets(spec, frozen)) {
        if (std::ranges::find(bucket.uses, last) == bucket.uses.end()) continue;
        for (const BucketTensor& tensor : bucket.tensors) {
          all += static_cast<double>(tensor.count);
          if (!bucket.frozen) trained += static_cast<double>(tensor.count);
        }
      }
      EXPECT_EQ(trained < all, !unties && frozen > 0);
      EXPECT_DOUBLE_EQ(training_costs(spec, frozen).back().weight_flops,
                       spec.units.back().cost.weight_flops * (trained / all))
          << frozen;
    }
  }
}

TEST(GptTest, DecaysMatricesOnlyAndScalesResidualInit) {
  const auto model = make_model("gpt", kSmall);
  for (const UnitSpec& unit : model->spec().units)
    for (const ParameterSpec& p : unit.parameters) {
      EXPECT_EQ(p.decay, p.shape.size() == 2) << p.name;
      const bool residual = p.name == "proj.weight" || p.name == "down.weight";
      if (p.shape.size() == 2) {
        EXPECT_EQ(p.init.kind, Init::Kind::normal);
        EXPECT_FLOAT_EQ(p.init.std, residual ? 0.02F / std::sqrt(6.0F) : 0.02F) << p.name;
      } else {
        EXPECT_EQ(p.init.kind, p.name == "ln.weight" ? Init::Kind::ones : Init::Kind::zeros);
      }
    }
}

TEST(GptTest, CostsCountWhatIsComputed) {
  const auto model = make_model("gpt", kSmall);
  const auto& units = model->spec().units;
  const double rows = 40, width = 48, pairs = 2 * 20 * 21 / 2.0;
  EXPECT_EQ(units[1].cost.forward_flops, 2 * rows * width * width * 4 + 4 * pairs * width);
  EXPECT_EQ(units[1].cost.input_flops, 2 * rows * width * width * 4 + 10 * pairs * width);
  EXPECT_EQ(units[1].cost.weight_flops, 2 * rows * width * width * 4);
  EXPECT_EQ(units[2].cost.forward_flops, 2 * rows * width * width * 8);
  EXPECT_EQ(units.back().cost.weight_flops, 2 * rows * width * 65);
  EXPECT_EQ(model->spec().boundary_bytes, 40U * 48U * 4U);
}

TEST(StageMemoryTest, FrozenUnitsSaveNothingAndShareOneScratch) {
  const auto model = make_model("gpt", kSmall);
  const auto backend = make_oracle_backend();
  const auto stage = [&](int first, int last, int frozen) {
    const auto buckets = make_buckets(model->spec(), frozen);
    return ModelStage(*backend, *model, buckets, first, last, frozen).memory();
  };
  EXPECT_EQ(stage(0, 4, 4).saved_bytes, 0U);
  EXPECT_EQ(stage(0, 4, 4).grad_bytes, 0U);
  EXPECT_EQ(stage(0, 4, 4).workspace_bytes, 0U);
  EXPECT_EQ(stage(1, 5, 5).forward_bytes, stage(1, 4, 4).forward_bytes);
  EXPECT_EQ(stage(1, 5, 1).forward_bytes, 0U);
  const std::size_t edge = align_up(model->spec().boundary_bytes);
  EXPECT_EQ(stage(1, 6, 4).saved_bytes, edge + stage(4, 6, 4).saved_bytes);
  EXPECT_EQ(stage(1, 6, 4).grad_bytes, stage(4, 6, 4).grad_bytes);
}

void expect_stages_of_spec(const ModelConfig& config) {
  const auto model = make_model("gpt", config);
  const int units = static_cast<int>(model->spec().units.size());
  const std::vector<UnitCost> costs = training_costs(model->spec(), 0);
  const auto buckets = make_buckets(model->spec());
  const auto backend = make_oracle_backend();
  const std::size_t boundary = align_up(model->spec().boundary_bytes);
  for (int first = 0; first < units; ++first)
    for (int last = first + 1; last <= units; ++last) {
      const ModelStage stage(*backend, *model, buckets, first, last);
      std::size_t saved = 0, grads = 0, most = 0;
      for (int u = first; u < last; ++u) {
        const UnitCost& cost = costs[static_cast<std::size_t>(u)];
        saved += cost.saved_bytes;
        grads += cost.grad_bytes;
        most = std::max(most, cost.grad_bytes);
      }
      const auto edges = static_cast<std::size_t>(last - first - 1);
      const StageMemory memory = stage.memory();
      EXPECT_EQ(memory.saved_bytes, saved + edges * boundary);
      EXPECT_EQ(memory.grad_bytes, grads + edges * boundary);
      EXPECT_EQ(memory.boundary_bytes, model->spec().boundary_bytes);
      EXPECT_EQ(memory.workspace_bytes, most + std::min<std::size_t>(edges, 2) * boundary);
      EXPECT_EQ(stage.first_unit(), first);
      EXPECT_EQ(stage.last_unit(), last);
      for (int b = 0; b < std::ssize(buckets); ++b)
        EXPECT_EQ(std::ranges::count(stage.buckets(), b),
                  std::ranges::any_of(buckets[static_cast<std::size_t>(b)].uses,
                                      [&](int u) { return first <= u && u < last; }));
    }
}

TEST(StageMemoryTest, AndBucketsFollowFromTheSpec) {
  for (const double dropout : {0.0, 0.2})
    for (const std::vector<std::string>& again :
         {std::vector<std::string>{}, {"full"}, {"attention"}}) {
      ModelConfig config = kSmall;
      config.dropout = dropout;
      config.recompute = again;
      expect_stages_of_spec(config);
    }
}

TEST(ModelTest, EveryLayerNormHasTheEpsilonOfTheFamily) {
  for (const char* family : {"gpt", "neox", "bert"}) {
    ModelConfig config = kSmall;
    config.options["norm_eps"] = 0.5;
    const Graph graph = make_model(family, config)->describe();
    for (const GraphNode& node : graph.nodes) {
      if (node.op != "LayerNormalization") continue;
      EXPECT_EQ(std::get<float>(node.attributes.at("epsilon")), 0.5F) << family << node.name;
    }
  }
}

TEST(ModelTest, TheLastMlpOfAClassificationHasOneRowASample) {
  for (const Entry<Family>& family : models()) {
    if (family.name == "neox") continue;  // its last MLP is in the same unit as attention
    ModelConfig config = kSmall;
    config.task = "classification";
    const auto model = make_model(family.name, config);
    const auto& units = model->spec().units;
    const UnitSpec &before = units[units.size() - 4], &last = units[units.size() - 2];
    const double rows = before.cost.forward_flops / last.cost.forward_flops;
    EXPECT_EQ(rows, family.name == "vit" ? 17 : 20) << family.name;
    EXPECT_LT(last.cost.saved_bytes, before.cost.saved_bytes) << family.name;
    ASSERT_EQ(last.parameters.size(), before.parameters.size());
    for (std::size_t p = 0; p < last.parameters.size(); ++p)
      EXPECT_EQ(last.parameters[p].shape, before.parameters[p].shape) << last.parameters[p].name;
  }
}

TEST(ModelTest, WhereFewTokensAreMaskedTheRestOfTheLastMlpAndOfTheHeadIsLeftOut) {
  ModelConfig config = kSmall;
  const auto all = make_model("bert", config);
  config.targets = 3;
  const auto few = make_model("bert", config);
  const auto &units = all->spec().units, &less = few->spec().units;
  const double share = 3.0 / static_cast<double>(config.context);
  for (std::size_t u = 0; u < units.size(); ++u) {
    const bool last = u + 1 == units.size(), mlp = u + 2 == units.size();
    EXPECT_DOUBLE_EQ(less[u].cost.forward_flops,
                     units[u].cost.forward_flops * (last || mlp ? share : 1))
        << less[u].name;
    for (std::size_t p = 0; p < units[u].parameters.size(); ++p)
      EXPECT_EQ(less[u].parameters[p].shape, units[u].parameters[p].shape);
  }
}

TEST(ModelTest, BadSizesNameTheirKey) {
  const auto expect_refused = [](const char* key, const auto& change,
                                 const std::string& family = "gpt") {
    ModelConfig config = kSmall;
    change(config);
    const Error error = input_error([&] { make_model(family, config); });
    EXPECT_EQ(error.where(), key);
    EXPECT_FALSE(error.fix().empty());
  };
  expect_refused("batch.microbatches", [](ModelConfig& config) { config.samples = 0; });
  expect_refused("model.heads", [](ModelConfig& config) { config.heads = 5; });
  ModelConfig odd = kSmall;
  odd.width = 3 * odd.heads;
  EXPECT_NO_THROW(make_model("gpt", odd));
  expect_refused(
      "model.heads", [&](ModelConfig& config) { config = odd; }, "llama");
  expect_refused("batch.microbatches",
                 [](ModelConfig& config) { config.context = config.samples = 1 << 24; });
}

/// Dropout numbers elements with 32 bits: here 2^35 outputs of a sample and 2^40 of attention.
TEST(ModelTest, DropoutOfTooManyElementsIsRefused) {
  ModelConfig counted = kSmall;
  counted.heads = counted.samples = 1;
  counted.width = 1 << 15;
  counted.context = 1 << 20;
  EXPECT_NO_THROW(make_model("gpt", counted));
  counted.dropout = 0.1;
  EXPECT_EQ(input_error([&] { make_model("gpt", counted); }).where(), "model.dropout");
  counted.dropout = 0, counted.attention_dropout = 0.1;
  EXPECT_EQ(input_error([&] { make_model("gpt", counted); }).where(), "model.attention_dropout");
  counted.context = 1 << 17;
  EXPECT_NO_THROW(make_model("gpt", counted));
}

TEST(ModelTest, AnUnknownFamilyListsTheKnown) {
  const Error error = input_error([] { make_model("gtp", kSmall); });
  EXPECT_EQ(error.where(), "model.family");
  expect_has(error.fix(), "gpt");
}

/// Every linear map of a model gets the precision; fp8 would make the head's logits too inaccurate.
TEST(ModelTest, LinearMapsMultiplyWhatThePrecisionSays) {
  const auto backend = make_oracle_backend();
  for (const Precision& precision : kPrecisions) {
    ModelConfig config = kSmall;
    config.precision = precision;
    const auto model = make_model("gpt", config);
    Profile profile;
    const auto recorder = make_profile_backend(*backend, profile);
    for (int unit = 0; unit < std::ssize(model->spec().units); ++unit)
      model->make_unit(unit, *recorder);
    EXPECT_EQ(profile.products.size(), 5U);  // qkv, proj, up, down, head
    for (const auto& [shape, times] : profile.products) {
      const bool dear = shape.out == config.vocab && precision.products == Products::fp8;
      EXPECT_EQ(Precision(shape.compute, shape.products),
                dear ? Precision(precision.storage) : precision)
          << name_of(precision) << ", " << shape.in << " x " << shape.out;
    }
  }
}

}  // namespace
}  // namespace concertina
