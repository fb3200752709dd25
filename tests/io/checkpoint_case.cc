#include "tests/io/checkpoint_case.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "io/checkpoint_commit.h"
#include "io/checkpoint_reader.h"
#include "io/checkpoint_shard.h"

namespace concertina {

std::int64_t draw(Random& random, std::int64_t low, std::int64_t high) {
  return std::uniform_int_distribution<std::int64_t>(low, high)(random);
}

Contents random_contents(Random& random, std::int64_t most) {
  Contents contents;
  const std::int64_t tensors = draw(random, 1, most);
  for (std::int64_t t = 0; t < tensors; ++t) {
    const std::string name = fmt::format("{:03}.unit/tensor.{}", t / 3, t);
    std::vector<std::int64_t> shape;
    std::size_t count = 1;
    for (std::int64_t dims = draw(random, 1, 4); dims > 0; --dims) {
      shape.push_back(draw(random, 1, 9));
      count *= static_cast<std::size_t>(shape.back());
    }
    for (const char* part : {"weight", "m", "v"}) {
      std::vector<float>& values = contents.values[{name, part}];
      values.resize(count);
      // All bit patterns: infinities and NaNs too are state to keep.
      for (float& value : values) {
        const auto bits = static_cast<std::uint32_t>(random());
        std::memcpy(&value, &bits, sizeof value);
      }
    }
    contents.shapes[name] = std::move(shape);
  }
  return contents;
}

Pieces cut(const Contents& contents, std::size_t shards, Random& random) {
  Pieces pieces(shards);
  for (const auto& [name, shape] : contents.shapes) {
    const std::size_t total = contents.values.at({name, "weight"}).size();
    for (std::size_t begin = 0; begin < total;) {
      const std::int64_t left = static_cast<std::int64_t>(total - begin);
      const auto count =
          static_cast<std::size_t>(draw(random, 0, 2) == 0 ? left : draw(random, 1, left));
      TensorPiece piece{name, shape, begin, count, {}};
      for (const char* part : {"weight", "m", "v"})
        piece.parts.push_back({part, contents.values.at({name, part}).data() + begin});
      pieces[static_cast<std::size_t>(draw(random, 0, std::ssize(pieces) - 1))].push_back(piece);
      begin += count;
    }
  }
  for (auto& shard : pieces) std::shuffle(shard.begin(), shard.end(), random);
  return pieces;
}

Uncommitted write_shards(const std::string& checkpoints, std::int64_t step, const Pieces& pieces) {
  Uncommitted written{begin_checkpoint(checkpoints, step), {}};
  for (std::size_t i = 0; i < pieces.size(); ++i)
    written.shards.push_back(write_shard(written.partial, i, pieces[i]));
  return written;
}

std::string commit(const std::string& checkpoints, std::int64_t step, const Contents& contents,
                   std::size_t shards, Random& random) {
  Uncommitted written = write_shards(checkpoints, step, cut(contents, shards, random));
  return write_manifest(written.partial, std::move(written.shards), {{"seed", 17}});
}

std::string difference(const std::string& directory, const Contents& expected) {
  CheckpointReader reader(directory);
  std::vector<std::string> names;
  for (const auto& [name, shape] : expected.shapes) names.push_back(name);
  if (reader.tensors() != names) return "other tensors";
  for (const auto& [key, values] : expected.values) {
    const auto& [name, part] = key;
    if (reader.shape(name) != expected.shapes.at(name)) return "shape of " + name;
    std::vector<float> got(values.size());
    reader.read(name, part, 0, got);
    if (std::memcmp(got.data(), values.data(), values.size() * sizeof(float)) != 0)
      return "values of " + name + "/" + part;
  }
  return {};
}

std::string slurp(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), {}};
}

void spill(const std::string& path, const std::string& content) {
  std::filesystem::remove(path);  // ext4 flushes a file that is cut to nothing and written anew
  std::ofstream(path, std::ios::binary) << content;
}

std::vector<std::string> files_of(const std::string& directory) {
  std::vector<std::string> files;
  for (const auto& entry : std::filesystem::directory_iterator(directory))
    if (entry.is_regular_file()) files.push_back(entry.path().string());
  std::sort(files.begin(), files.end());
  return files;
}

}  // namespace concertina
