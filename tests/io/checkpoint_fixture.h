// Checkpoints of a made-up model, cut into shards in any way, whose values are known by formula.
#pragma once

#include <algorithm>
#include <cstdint>
#include <random>
#include <string>
#include <vector>

#include "io/checkpoint_commit.h"
#include "io/checkpoint_reader.h"
#include "io/checkpoint_shard.h"
#include "tests/io/temporary_files.h"

namespace concertina {

using Random = std::mt19937_64;

inline std::uint64_t pick(Random& random, std::uint64_t first, std::uint64_t last) {
  return std::uniform_int_distribution<std::uint64_t>(first, last)(random);
}

struct TestTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::vector<std::string> parts;
};
using TestModel = std::vector<TestTensor>;

inline TestModel small_model() {
  const std::vector<std::string> all = {"weight", "m", "v"};
  return {{"000.embedding/position", {17, 6}, all}, {"001.attention/qkv.weight", {6, 3, 5, 2}, all},
          {"001.attention/qkv.bias", {90}, all},    {"002.mlp/up.weight", {61, 83}, all},
          {"999.head/scale", {1}, {"weight"}},      {"token_embedding", {256, 6}, all}};
}

inline std::vector<float> values_of(const TestTensor& tensor, const std::string& part) {
  std::uint64_t salt = 0;
  for (const char c : tensor.name + "/" + part) salt += static_cast<unsigned char>(c);
  std::vector<float> values(element_count(tensor.shape, "test"));
  for (std::uint64_t i = 0; i < values.size(); ++i)
    values[i] = static_cast<float>((i * 2654435761U + salt) % (1U << 24));
  return values;
}

struct Cut {
  std::size_t tensor = 0, offset = 0, count = 0;
};
/// The pieces of each shard.
using Sharding = std::vector<std::vector<Cut>>;

/// Each tensor in up to `cuts` + 1 pieces, each on any of `shards` ranks.
inline Sharding random_sharding(const TestModel& model, std::size_t shards, std::size_t cuts,
                                Random& random) {
  Sharding sharding(shards);
  for (std::size_t t = 0; t < model.size(); ++t) {
    const std::size_t total = element_count(model[t].shape, "test");
    std::vector<std::size_t> ends = {total};
    for (std::size_t c = pick(random, 0, cuts); c > 0; --c) ends.push_back(pick(random, 1, total));
    std::sort(ends.begin(), ends.end());
    std::size_t begin = 0;
    for (const std::size_t end : ends) {
      if (end > begin) sharding[pick(random, 0, shards - 1)].push_back({t, begin, end - begin});
      begin = end;
    }
  }
  return sharding;
}

inline std::vector<ShardRecord> write_shards(const std::string& partial, const TestModel& model,
                                             const Sharding& sharding) {
  std::vector<ShardRecord> records;
  for (std::size_t s = 0; s < sharding.size(); ++s) {
    std::vector<std::vector<float>> buffers;  // stable: sized before pointers are taken
    std::vector<TensorPiece> pieces;
    for (const Cut& cut : sharding[s]) {
      const TestTensor& tensor = model[cut.tensor];
      TensorPiece piece{tensor.name, tensor.shape, cut.offset, cut.count, {}};
      for (const std::string& part : tensor.parts) {
        const std::vector<float> whole = values_of(tensor, part);
        buffers.emplace_back(whole.begin() + static_cast<std::ptrdiff_t>(cut.offset),
                             whole.begin() + static_cast<std::ptrdiff_t>(cut.offset + cut.count));
        piece.parts.push_back({part, buffers.back().data()});
      }
      pieces.push_back(piece);
    }
    records.push_back(write_shard(partial, s, pieces));
  }
  return records;
}

/// A whole checkpoint; returns the commit's path.
inline std::string save(const std::string& checkpoints, std::int64_t step, const TestModel& model,
                        const Sharding& sharding) {
  const std::string partial = begin_checkpoint(checkpoints, step);
  std::vector<ShardRecord> records = write_shards(partial, model, sharding);
  return write_manifest(partial, std::move(records), {{"step", step}});
}

/// Every element of every part, as it must be; throws what the reader throws.
inline bool reads_right(const std::string& commit, const TestModel& model) {
  CheckpointReader reader(commit);
  for (const TestTensor& tensor : model)
    for (const std::string& part : tensor.parts) {
      const std::vector<float> expected = values_of(tensor, part);
      std::vector<float> got(expected.size(), -1);
      reader.read(tensor.name, part, 0, got);
      if (got != expected || reader.shape(tensor.name) != tensor.shape) return false;
    }
  return reader.tensors().size() == model.size();
}

class CheckpointTest : public FileTest {
 protected:
  std::string checkpoints() const { return path("checkpoints"); }
  std::string save_small(std::int64_t step, std::size_t shards = 3) {
    return save(checkpoints(), step, model_, random_sharding(model_, shards, 4, random_));
  }

  TestModel model_ = small_model();
  Random random_{20240613};
};

}  // namespace concertina
