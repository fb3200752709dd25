#include "experiments/run/state_hash.h"

#include "io/sha256.h"

namespace concertina {
namespace {

constexpr std::size_t kHex = 64;  // hexadecimal digits of a digest

/// The number of characters in a part's digests.
std::size_t digests_length(const Part& part) {
  return kHex * (part.last_block - part.first_block);
}

std::string block_digest(const State& state, std::size_t bucket, const Part& part,
                         const Block& block) {
  Sha256 hash;
  std::vector<std::byte> scratch;
  const auto update = [&](View tensor) {
    hash.update(bytes_of(host_view(state.memory(), tensor, scratch)));
  };
  update(state.weights()[bucket].slice(block.offset, block.count));
  const std::size_t kinds =
      own_state(state.assignment(), bucket, state.rank()) == nullptr ? 0 : state.kinds().size();
  for (std::size_t k = 0; k < kinds; ++k)
    update(state.part(bucket, k).slice(block.offset - part.begin, block.count));
  return hash.hex();
}

std::string part_digests(const Trainer& trainer, std::size_t bucket, const Part& part) {
  std::string digests;
  digests.reserve(digests_length(part));
  for (std::size_t i = part.first_block; i < part.last_block; ++i) {
    digests += block_digest(trainer.state(), bucket, part,
                            block_at(trainer.assignment().buckets[bucket], i));
    trainer.beat();
  }
  return digests;
}

/// Calls `see(bucket, part, rank)` for every part of the state, in hashing order.
template <class See>
void each_part(const std::vector<BucketOwners>& owners, const See& see) {
  for (std::size_t b = 0; b < owners.size(); ++b)
    for (std::size_t i = 0; i < owners[b].ranks.size(); ++i)
      if (const Part& part = owners[b].parts[i]; part.last_block > part.first_block)
        see(b, part, owners[b].ranks[i]);
}

/// Computes the digests on all ranks at once; queued messages are small compared with the state.
void send_digests(Trainer& trainer, int rank) {
  std::vector<std::string> digests;
  each_part(trainer.assignment().owners, [&](std::size_t bucket, const Part& part, int owner) {
    if (owner == rank) digests.push_back(part_digests(trainer, bucket, part));
  });
  for (const std::string& one : digests)
    trainer.world().isend(std::as_bytes(std::span(one)), 0).wait();
}

/// Runs on rank 0, which keeps the digests of one part at a time: calls `see(bucket, digests)`.
template <class See>
void receive_digests(Trainer& trainer, const See& see) {
  each_part(trainer.assignment().owners, [&](std::size_t bucket, const Part& part, int owner) {
    std::string digests;
    if (owner == 0) {
      digests = part_digests(trainer, bucket, part);
    } else {
      digests.resize(digests_length(part));
      trainer.world().irecv(std::as_writable_bytes(std::span(digests)), owner).wait();
    }
    see(bucket, digests);
  });
}

/// Returns on every rank the `length` characters of `hash()`, which rank 0 computes.
template <class Hash>
std::string on_all(Trainer& trainer, std::size_t length, const Hash& hash) {
  const Watchdog::Patience patience(trainer.watchdog(), "state hash");
  std::string result(length, ' ');
  if (trainer.world().rank() == 0)
    result = hash();
  else
    send_digests(trainer, trainer.world().rank());
  trainer.world().broadcast(std::as_writable_bytes(std::span(result)), 0).wait();
  return result;
}

}  // namespace

std::string state_sha256(Trainer& trainer) {
  return on_all(trainer, kHex, [&] {
    Sha256 hash;
    receive_digests(trainer,
                    [&](std::size_t, const std::string& digests) { hash.update(digests); });
    return hash.hex();
  });
}

std::vector<std::string> bucket_sha256(Trainer& trainer) {
  const std::size_t buckets = trainer.assignment().buckets.size();
  const std::string all = on_all(trainer, kHex * buckets, [&] {
    std::vector<Sha256> hashes(buckets);
    receive_digests(trainer, [&](std::size_t bucket, const std::string& digests) {
      hashes[bucket].update(digests);
    });
    std::string text;
    for (Sha256& hash : hashes) text += hash.hex();
    return text;
  });
  std::vector<std::string> result;
  for (std::size_t b = 0; b < buckets; ++b) result.push_back(all.substr(b * kHex, kHex));
  return result;
}

}  // namespace concertina
