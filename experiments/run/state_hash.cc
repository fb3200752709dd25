#include "experiments/run/state_hash.h"

#include <vector>

#include "io/sha256.h"

namespace concertina {
namespace {

constexpr std::size_t kHex = 64;  // digits of a digest

std::size_t owned_blocks(const RunPlan& run, int rank) {
  std::size_t blocks = 0;
  for (const BucketOwners& owners : run.owners)
    if (const int me = owners.index_of(rank); me >= 0) {
      const Part& part = owners.parts[static_cast<std::size_t>(me)];
      blocks += part.last_block - part.first_block;
    }
  return blocks;
}

std::string block_digest(const RankEngine& engine, std::size_t bucket, const Part& part,
                         const Block& block) {
  Sha256 hash;
  std::vector<std::byte> scratch;
  const auto update = [&](View tensor) {
    hash.update(bytes_of(host_view(engine.tensor_memory(), tensor, scratch)));
  };
  update(engine.weights()[bucket].slice(block.offset, block.count));
  const std::size_t states =
      engine.run().buckets[bucket].frozen ? 0 : engine.update().state_names().size();
  for (std::size_t s = 0; s < states; ++s)
    update(engine.update()
               .state(static_cast<int>(bucket), s)
               .slice(block.offset - part.begin, block.count));
  return hash.hex();
}

std::string own_digests(const RankEngine& engine, int rank) {
  const RunPlan& run = engine.run();
  std::string digests;
  for (std::size_t b = 0; b < run.buckets.size(); ++b) {
    const int me = run.owners[b].index_of(rank);
    if (me < 0) continue;
    const Part& part = run.owners[b].parts[static_cast<std::size_t>(me)];
    for (std::size_t i = part.first_block; i < part.last_block; ++i) {
      digests += block_digest(engine, b, part, block_at(run.buckets[b], i));
      if (engine.watchdog() != nullptr) engine.watchdog()->beat();
    }
  }
  return digests;
}

}  // namespace

std::string state_sha256(RankEngine& engine) {
  const Watchdog::Patience patience(engine.watchdog(), "state hash");
  const RunPlan& run = engine.run();
  Communicator& world = engine.world();
  std::vector<std::string> digests;
  std::vector<Bytes> parts;
  for (int rank = 0; rank < run.world; ++rank)
    digests.emplace_back(kHex * owned_blocks(run, rank), ' ');
  for (std::string& one : digests) parts.push_back(std::as_writable_bytes(std::span(one)));
  const std::string mine = own_digests(engine, world.rank());
  world.all_gather(std::as_bytes(std::span(mine)), parts).wait();

  std::vector<std::size_t> next(digests.size(), 0);
  Sha256 hash;
  for (const BucketOwners& owners : run.owners)
    for (std::size_t i = 0; i < owners.ranks.size(); ++i) {
      const auto rank = static_cast<std::size_t>(owners.ranks[i]);
      const std::size_t length = kHex * (owners.parts[i].last_block - owners.parts[i].first_block);
      hash.update(std::string_view(digests[rank]).substr(next[rank], length));
      next[rank] += length;
    }
  return hash.hex();
}

}  // namespace concertina
