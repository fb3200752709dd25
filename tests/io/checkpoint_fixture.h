// Random checkpoints: tensors of any shape and bits, cut and assigned to shards at random.
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
using TestModel = std::vector<TestTensor>;  // sorted by name

/// Returns all bit patterns: infinities and NaNs must be preserved too.
TestTensor random_tensor(std::string name, std::vector<std::int64_t> shape,
                         const std::vector<std::string>& parts, Random& random);
/// Tensors have 1 to 4 dimensions, and parts weight, m and v, or only weight.
TestModel random_model(std::int64_t tensors, Random& random);
bool same_bits(std::span<const float> a, std::span<const float> b);

/// Returns a piece that points into `tensor`.
TensorPiece piece(const TestTensor& tensor, std::size_t offset, std::size_t count);
/// The pieces of each shard.
using Pieces = std::vector<std::vector<TensorPiece>>;
/// Cuts all of `model` into shards, some possibly empty.
Pieces cut(const TestModel& model, std::int64_t shards, Random& random);

std::vector<ShardRecord> write_shards(const std::string& partial, const Pieces& pieces);
/// Saves a whole commit, and returns its path.
std::string save(const std::string& checkpoints, std::int64_t step, const Pieces& pieces);
/// Returns what in a commit is not bit-identical to `model`, or "". Throws the reader's errors.
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
