// A snapshot whose parts are in the memory of several hosts. Invariants: collective; all ranks
// agree on which snapshot it is; only the parts that a host needs and lacks are sent.
#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "io/checkpoint/snapshot_file.h"
#include "parallel/comm/communicator.h"

namespace concertina {

struct SharedSnapshot {
  OpenCommit commit;                        // shard r belongs to rank r of the launch that took it
  std::vector<std::vector<int>> holders{};  // by shard: the hosts that have it
};

/// The newest snapshot up to step `most` whose parts are all on hosts of the world; nullopt if
/// there is none. `hosts`: by rank. Every rank receives the list of every host's parts: a few
/// kilobytes per part.
std::optional<SharedSnapshot> find_snapshot(Communicator& world, const std::vector<int>& hosts,
                                            const SnapshotRun& run, std::int64_t most);

/// Copies the shards `wanted` by this rank that its host lacks from hosts that have them. Throws
/// Error{failure} on all ranks if a host has no space. Unreadable data arrives as zeros, which fail
/// every hash check.
void fetch_shards(Communicator& world, const std::vector<int>& hosts,
                  const SharedSnapshot& snapshot, const std::vector<std::size_t>& wanted);

}  // namespace concertina
