// A snapshot whose parts lie in the memory of several hosts.
// Invariants: collective; all ranks agree on which one it is; only what a host needs and lacks
// travels.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "io/checkpoint/snapshot_file.h"
#include "parallel/comm/communicator.h"

namespace concertina {

struct SharedSnapshot {
  OpenCommit commit;                        // shard r is of rank r of the launch that took it
  std::vector<std::vector<int>> holders{};  // by shard: the hosts that have it
};

/// The newest snapshot up to step `most` of which the hosts of the world have all parts together,
/// if any. `hosts`: by rank. Every host's list of parts goes to every rank: some kilobytes per rank
/// of the snapshot.
std::optional<SharedSnapshot> find_snapshot(Communicator& world, const std::vector<int>& hosts,
                                            const SnapshotRun& run, std::int64_t most);

/// Copies those of the shards `wanted` by this rank that its host lacks from hosts that have them.
/// Throws a failure, on the ranks concerned, where there is no room; what could not be read comes
/// as zeros, which no hash accepts.
void fetch_shards(Communicator& world, const std::vector<int>& hosts,
                  const SharedSnapshot& snapshot, const std::vector<std::size_t>& wanted);

}  // namespace concertina
