// Random checkpoints for tests: tensors cut into pieces at random and dealt to shards at random.
#pragma once

#include <cstdint>
#include <map>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "io/checkpoint_format.h"

namespace concertina {

/// What a checkpoint should give back: (tensor, part) -> all elements.
struct Contents {
  std::map<std::string, std::vector<std::int64_t>> shapes;
  std::map<std::pair<std::string, std::string>, std::vector<float>> values;
};

using Random = std::mt19937_64;
/// Uniform in [low, high].
std::int64_t draw(Random& random, std::int64_t low, std::int64_t high);

/// One to `most` tensors of 1 to 4 dimensions with parts weight, m and v.
Contents random_contents(Random& random, std::int64_t most = 8);

/// Pieces per shard that cover `contents`, with pointers into it; some shards may hold nothing.
using Pieces = std::vector<std::vector<TensorPiece>>;
Pieces cut(const Contents& contents, std::size_t shards, Random& random);

/// begin_checkpoint and write_shard for every shard, not committed.
struct Uncommitted {
  std::string partial;
  std::vector<ShardRecord> shards;
};
Uncommitted write_shards(const std::string& checkpoints, std::int64_t step, const Pieces& pieces);

/// A whole commit; returns its path.
std::string commit(const std::string& checkpoints, std::int64_t step, const Contents& contents,
                   std::size_t shards, Random& random);

/// Reads each tensor whole and compares bit by bit; empty if all is equal, else what is not.
/// Errors of the reader come through.
std::string difference(const std::string& directory, const Contents& expected);

std::string slurp(const std::string& path);
void spill(const std::string& path, const std::string& content);
/// The regular files of `directory`, sorted.
std::vector<std::string> files_of(const std::string& directory);

}  // namespace concertina
