#include "experiments/run/state_hash.h"

#include <vector>

#include "io/sha256.h"

namespace concertina {
namespace {

constexpr std::size_t kHex = 64;  // digits of a digest

/// Characters of the digests of a part.
std::size_t digests_length(const Part& part) {
  return kHex * (part.last_block - part.first_block);
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

std::string part_digests(const RankEngine& engine, std::size_t bucket, const Part& part) {
  std::string digests;
  digests.reserve(digests_length(part));
  for (std::size_t i = part.first_block; i < part.last_block; ++i) {
    digests += block_digest(engine, bucket, part, block_at(engine.run().buckets[bucket], i));
    if (engine.watchdog() != nullptr) engine.watchdog()->beat();
  }
  return digests;
}

/// `see(bucket, part, rank)` of every part of the state, in the order that is hashed.
template <class See>
void each_part(const RunPlan& run, const See& see) {
  for (std::size_t b = 0; b < run.owners.size(); ++b)
    for (std::size_t i = 0; i < run.owners[b].ranks.size(); ++i)
      if (const Part& part = run.owners[b].parts[i]; part.last_block > part.first_block)
        see(b, part, run.owners[b].ranks[i]);
}

/// All ranks make their digests at the same time; what waits to be sent is small beside the state.
void send_digests(RankEngine& engine, int rank) {
  std::vector<std::string> digests;
  each_part(engine.run(), [&](std::size_t bucket, const Part& part, int owner) {
    if (owner == rank) digests.push_back(part_digests(engine, bucket, part));
  });
  for (const std::string& one : digests)
    engine.world().isend(std::as_bytes(std::span(one)), 0).wait();
}

/// On rank 0, which keeps the digests of one part at a time.
std::string hash_digests(RankEngine& engine) {
  Sha256 hash;
  each_part(engine.run(), [&](std::size_t bucket, const Part& part, int owner) {
    std::string digests;
    if (owner == 0) {
      digests = part_digests(engine, bucket, part);
    } else {
      digests.resize(digests_length(part));
      engine.world().irecv(std::as_writable_bytes(std::span(digests)), owner).wait();
    }
    hash.update(digests);
  });
  return hash.hex();
}

}  // namespace

std::string state_sha256(RankEngine& engine) {
  const Watchdog::Patience patience(engine.watchdog(), "state hash");
  Communicator& world = engine.world();
  std::string hash(kHex, ' ');
  if (world.rank() == 0)
    hash = hash_digests(engine);
  else
    send_digests(engine, world.rank());
  world.broadcast(std::as_writable_bytes(std::span(hash)), 0).wait();
  return hash;
}

}  // namespace concertina
