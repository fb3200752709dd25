#include "core/model/model_spec.h"

#include <fmt/format.h>
#include <rapidcheck.h>

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <map>
#include <utility>

#include "core/error.h"

namespace concertina {
namespace {

/// Random units with their own parameters, or with one of three shared tensors.
ModelSpec random_model() {
  ModelSpec model;
  const int units = *rc::gen::inRange(1, 8);
  for (int u = 0; u < units; ++u) {
    UnitSpec unit{fmt::format("unit{}", u), {}, {}};
    const int own = *rc::gen::inRange(0, 4);
    for (int p = 0; p < own; ++p)
      unit.parameters.push_back({fmt::format("p{}", p),
                                 {*rc::gen::inRange(1, 5000), *rc::gen::inRange(1, 4)},
                                 p % 2 == 0,
                                 {},
                                 ""});
    for (int s = 0; s < 3; ++s)
      if (*rc::gen::arbitrary<bool>())
        unit.parameters.push_back({"shared", {7 + s, 3}, true, {}, fmt::format("shared{}", s)});
    model.units.push_back(unit);
  }
  return model;
}

TEST(BucketsTest, HoldEveryParameterOnce) {
  EXPECT_TRUE(rc::check([] {
    const ModelSpec model = random_model();
    std::map<std::string, std::vector<int>> expected;  // tensor -> units
    for (int u = 0; u < std::ssize(model.units); ++u)
      for (const ParameterSpec& p : model.units[u].parameters)
        expected[p.shared.empty() ? model.units[u].name + "/" + p.name : p.shared].push_back(u);
    int last_first_use = -1;
    for (const Bucket& bucket : make_buckets(model)) {
      RC_ASSERT(bucket.uses.front() >= last_first_use);
      last_first_use = bucket.uses.front();
      std::size_t end = 0;
      for (const BucketTensor& tensor : bucket.tensors) {
        RC_ASSERT(expected.at(tensor.name) == bucket.uses);
        expected.erase(tensor.name);
        const ParameterSpec& p = model.units[tensor.unit].parameters[tensor.parameter];
        RC_ASSERT(tensor.shape == p.shape);
        RC_ASSERT(static_cast<std::int64_t>(tensor.count) == p.count());
        RC_ASSERT(tensor.offset % 16 == 0U);
        RC_ASSERT(tensor.offset >= end);
        end = tensor.offset + tensor.count;
      }
      RC_ASSERT(bucket.elements >= end);
      RC_ASSERT(bucket.elements < end + 16);
    }
    RC_ASSERT(expected.empty());
  }));
}

/// Samples of a text with 4 tokens each.
class TextSource final : public BatchSource {
 public:
  explicit TextSource(std::int64_t most_targets = 0)
      : fields_{tokens_field(4), targets_field(4, most_targets)} {}
  std::span<const Field> fields() const override { return fields_; }
  void load(std::int64_t, std::int64_t, std::int64_t, std::span<const View>) override {}
  std::int64_t valid_targets(std::int64_t, std::int64_t samples) const override { return samples; }

 private:
  const std::vector<Field> fields_;
};

TEST(FieldsTest, AreFoundByNameTypeAndShapeOrRefused) {
  const TextSource source;
  const std::vector<Field> wanted{text_fields(4)[1], text_fields(4)[0]};
  std::array<int, 2> indices{};
  find_fields(source.fields(), wanted, indices);
  EXPECT_EQ(indices, (std::array{1, 0}));
  for (const Field& other : {Field{"image", DType::f32, {4}}, Field{"tokens", DType::i32, {5}},
                             Field{"tokens", DType::f32, {4}}})
    EXPECT_THROW(find_fields(source.fields(), std::span(&other, 1), indices), Error) << other.name;
}

TEST(FieldsTest, AModelThatComputesFewTargetsIsGivenNoMore) {
  const auto finds = [](std::int64_t offered, std::int64_t wanted) {
    const TextSource source(offered);
    const Field field = targets_field(4, wanted);
    int index = -1;
    try {
      find_fields(source.fields(), std::span(&field, 1), std::span(&index, 1));
    } catch (const Error&) {
      return false;
    }
    return index == 1;
  };
  EXPECT_TRUE(finds(0, 0) && finds(2, 0) && finds(2, 2) && finds(2, 3));
  EXPECT_FALSE(finds(0, 2));
  EXPECT_FALSE(finds(3, 2));
}

TEST(BlocksTest, CoverEveryElementOnceAndNoPadding) {
  EXPECT_TRUE(rc::check([] {
    for (const Bucket& bucket : make_buckets(random_model())) {
      std::vector<int> owner(bucket.elements, -1);
      std::size_t end = 0;
      for (std::size_t b = 0; b < block_count(bucket); ++b) {
        const Block block = block_at(bucket, b);
        RC_ASSERT(block.count > 0U);
        RC_ASSERT(block.count <= kBlock);
        RC_ASSERT(block.offset >= std::exchange(end, block.offset + block.count));
        RC_ASSERT((block.offset - bucket.tensors[block.tensor].offset) % kBlock == 0U);
        for (std::size_t i = block.offset; i < block.offset + block.count; ++i) {
          RC_ASSERT(owner.at(i) == -1);
          owner[i] = block.tensor;
        }
      }
      for (int t = 0; t < std::ssize(bucket.tensors); ++t) {
        const BucketTensor& tensor = bucket.tensors[t];
        RC_ASSERT(std::count(owner.begin(), owner.end(), t) == static_cast<long>(tensor.count));
        RC_ASSERT(owner[tensor.offset] == t);
        RC_ASSERT(owner[tensor.offset + tensor.count - 1] == t);
      }
    }
  }));
}

/// An embedding, layers of one unit each, and a head tied to the embedding.
ModelSpec layered_model(int layers, bool head_has_own_weights) {
  ModelSpec model;
  model.units.push_back({"embedding", {{"table", {5, 3}, true, {}, "table"}}, {}});
  for (int layer = 0; layer < layers; ++layer) {
    model.units.push_back({fmt::format("layer{}", layer), {{"w", {3, 3}, true, {}, ""}}, {}});
    model.layer_ends.push_back(static_cast<int>(model.units.size()));
  }
  model.units.push_back({"head", {{"table", {5, 3}, true, {}, "table"}}, {}});
  if (head_has_own_weights) model.units.back().parameters.push_back({"norm", {3}, false, {}, ""});
  return model;
}

TEST(LayersTest, AreUnitsFromTheFirst) {
  const ModelSpec model = layered_model(3, true);
  EXPECT_EQ(units_of_layers(model, 0), 0);
  EXPECT_EQ(units_of_layers(model, 1), 2);
  EXPECT_EQ(units_of_layers(model, 3), 4);
  EXPECT_THROW(units_of_layers(model, 4), Error);
  EXPECT_THROW(units_of_layers(model, -1), Error);
  EXPECT_EQ(units_of_layers(ModelSpec{}, 0), 0);
  for (const auto& [units, layers] : {std::pair{0, 0}, {1, 0}, {2, 1}, {3, 2}, {4, 3}})
    EXPECT_EQ(layers_of_units(model, units), layers) << units;
  EXPECT_EQ(frozen_text(model, 0), "");
  EXPECT_EQ(frozen_text(model, 3), "2 of 3 layers frozen");
  EXPECT_EQ(frozen_text(model, 1), fmt::format("1 of {} units frozen", model.units.size()));
}

TEST(LayersTest, ATiedTableTrainsOnInTheHeadWhereTheModelUnties) {
  ModelSpec model = layered_model(3, true);
  const std::vector<Bucket> before = make_buckets(model);
  EXPECT_EQ(make_buckets(model, 2)[0].frozen, true);
  EXPECT_EQ(frozen_names(model, 3),
            "layers 1-2, and the token table (table), which is also the output matrix");
  model.unties = true;
  EXPECT_EQ(make_buckets(model).size(), before.size());
  for (const int units : {1, 2, 4}) {
    const std::vector<Bucket> buckets = make_buckets(model, units);
    ASSERT_EQ(buckets.size(), before.size() + 1);
    for (std::size_t b = 0; b < before.size(); ++b) EXPECT_EQ(buckets[b].name, before[b].name);
    EXPECT_FALSE(buckets[0].frozen);
    EXPECT_EQ(buckets[0].uses, std::vector<int>{4});
    const Bucket& copy = buckets.back();
    EXPECT_TRUE(copy.frozen);
    EXPECT_EQ(copy.copy_of, 0);
    EXPECT_EQ(copy.uses, std::vector<int>{0});
    EXPECT_EQ(copy.tensors[0].name, "embedding/table");
    EXPECT_EQ(copy.elements, buckets[0].elements);
    EXPECT_EQ(training_costs(model, units)[4].weight_flops, model.units[4].cost.weight_flops);
  }
  EXPECT_EQ(most_frozen_layers(layered_model(3, false)), 2);
  EXPECT_EQ(
      frozen_names(model, 2),
      "layer 1, with a copy of the current token table; the output matrix (table) continues to "
      "train");
  EXPECT_EQ(
      frozen_names(model, 1),
      "the first 1 of 5 units, with a copy of the current token table; the output matrix (table) "
      "continues to train");
}

TEST(LayersTest, SomethingTrainsOnWhateverIsFrozen) {
  EXPECT_EQ(most_frozen_layers(layered_model(3, true)), 3);
  // A head that has only the embedding's table is frozen with the first layer.
  EXPECT_EQ(most_frozen_layers(layered_model(3, false)), 2);
  EXPECT_EQ(most_frozen_layers(layered_model(1, false)), 0);
  EXPECT_EQ(most_frozen_layers(ModelSpec{}), 0);
}

TEST(BucketsTest, OneSharedNameHasOneShape) {
  ModelSpec model;
  model.units.push_back({"a", {{"w", {2, 3}, true, {}, "tied"}}, {}});
  model.units.push_back({"b", {{"w", {3, 2}, true, {}, "tied"}}, {}});
  EXPECT_THROW(make_buckets(model), Error);
}

}  // namespace
}  // namespace concertina
