#include "tests/io/checkpoint_fixture.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <utility>

namespace concertina {

TestTensor random_tensor(std::string name, std::vector<std::int64_t> shape,
                         const std::vector<std::string>& parts, Random& random) {
  TestTensor tensor{std::move(name), std::move(shape), {}};
  for (const std::string& part : parts) {
    std::vector<float>& values = tensor.parts[part];
    values.resize(element_count(tensor.shape, tensor.name));
    for (float& value : values) {
      const auto bits = static_cast<std::uint32_t>(random());
      std::memcpy(&value, &bits, sizeof value);
    }
  }
  return tensor;
}

TestModel random_model(std::int64_t tensors, Random& random) {
  TestModel model;
  for (std::int64_t t = 0; t < tensors; ++t) {
    std::vector<std::int64_t> shape(static_cast<std::size_t>(draw(random, 1, 4)));
    for (std::int64_t& extent : shape) extent = draw(random, 1, 13);
    const auto parts = draw(random, 0, 3) == 0 ? std::vector<std::string>{"weight"}
                                               : std::vector<std::string>{"weight", "m", "v"};
    const std::string name = t % 4 == 3 ? fmt::format("shared{}", t)  // not in a unit
                                        : fmt::format("{:03}.unit/tensor.{}", t / 3, t);
    model.push_back(random_tensor(name, shape, parts, random));
  }
  std::ranges::sort(model, {}, &TestTensor::name);
  return model;
}

bool same_bits(std::span<const float> a, std::span<const float> b) {
  return a.size() == b.size() &&
         (a.empty() || std::memcmp(a.data(), b.data(), a.size_bytes()) == 0);
}

TensorPiece piece(const TestTensor& tensor, std::size_t offset, std::size_t count) {
  TensorPiece piece{tensor.name, tensor.shape, offset, count, {}};
  for (const auto& [part, values] : tensor.parts)
    piece.parts.push_back({part, values.data() + offset});
  return piece;
}

Pieces cut(const TestModel& model, std::int64_t shards, Random& random) {
  Pieces pieces(static_cast<std::size_t>(shards));
  for (const TestTensor& tensor : model) {
    const auto total = static_cast<std::int64_t>(element_count(tensor.shape, tensor.name));
    for (std::int64_t begin = 0, count = 0; begin < total; begin += count) {
      count = draw(random, 0, 2) == 0 ? total - begin : draw(random, 1, total - begin);
      pieces[draw(random, 0, shards - 1)].push_back(piece(tensor, begin, count));
    }
  }
  for (auto& shard : pieces) std::ranges::shuffle(shard, random);
  return pieces;
}

std::vector<ShardRecord> write_shards(const std::string& partial, const Pieces& pieces) {
  std::vector<ShardRecord> records;
  for (std::size_t s = 0; s < pieces.size(); ++s)
    records.push_back(write_shard(partial, s, pieces[s]));
  return records;
}

std::string save(const std::string& checkpoints, std::int64_t step, const Pieces& pieces) {
  const std::string partial = begin_checkpoint(checkpoints, step);
  return write_manifest(partial, write_shards(partial, pieces), {{"step", step}});
}

std::string difference(const std::string& commit, const TestModel& model) {
  CheckpointReader reader(commit);
  if (reader.tensors().size() != model.size()) return "other tensors";
  for (const TestTensor& tensor : model) {
    if (reader.shape(tensor.name) != tensor.shape) return "shape of " + tensor.name;
    for (const auto& [part, values] : tensor.parts) {
      std::vector<float> got(values.size());
      reader.read(tensor.name, part, 0, got);
      if (!same_bits(got, values)) return "values of " + tensor.name + "/" + part;
    }
  }
  return {};
}

}  // namespace concertina
