// Random checkpoints: tensors of any shape and bits, cut at random, dealt to shards at random.
#pragma once

#include <map>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint_commit.h"
#include "io/checkpoint/checkpoint_reader.h"
#include "io/checkpoint/checkpoint_shard.h"
#include "tests/io/io_test.h"

namespace concertina {

struct TestTensor {
  std::string name;
  std::vector<std::int64_t> shape;
  std::map<std::string, std::vector<float>> parts;
};
using TestModel = std::vector<TestTensor>;  // ascending by name

/// All bit patterns: infinities and NaNs too are state to keep.
TestTensor random_tensor(std::string name, std::vector<std::int64_t> shape,
                         const std::vector<std::string>& parts, Random& random);
/// With 1 to 4 dimensions a tensor; parts weight, m and v, or weight alone.
TestModel random_model(std::int64_t tensors, Random& random);
bool same_bits(std::span<const float> a, std::span<const float> b);

/// Points into `tensor`.
TensorPiece piece(const TestTensor& tensor, std::size_t offset, std::size_t count);
/// The pieces of each shard.
using Pieces = std::vector<std::vector<TensorPiece>>;
/// Covers `model`; shards may hold nothing.
Pieces cut(const TestModel& model, std::int64_t shards, Random& random);

std::vector<ShardRecord> write_shards(const std::string& partial, const Pieces& pieces);
/// A whole commit; returns its path.
std::string save(const std::string& checkpoints, std::int64_t step, const Pieces& pieces);
/// What of a commit is not bit by bit `model`; empty if all is. Throws what the reader throws.
std::string difference(const std::string& commit, const TestModel& model);

class CheckpointTest : public ::testing::Test {
 protected:
  std::string path(const std::string& name) const { return root_.path() + "/" + name; }
  std::string checkpoints() const { return path("checkpoints"); }
  std::string save_model(std::int64_t step, std::int64_t shards = 3) {
    return save(checkpoints(), step, cut(model_, shards, random_));
  }
  std::vector<std::int64_t> steps() const {
    std::vector<std::int64_t> all;
    for (const Commit& commit : list_commits(checkpoints())) all.push_back(commit.step);
    return all;
  }

  TemporaryDirectory root_;
  Random random_{20240613};
  TestModel model_ = random_model(7, random_);
};

}  // namespace concertina
