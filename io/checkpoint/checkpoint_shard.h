// Writes one rank's shard of a checkpoint (checkpoint_format.h).
// Invariant: hashes are of memory, never of what a disk gave back; when write_shard returns, the
// bytes are on the storage, and when it throws, no file is left.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint_format.h"

namespace concertina {

/// The version of the HDF5 library that writes shards, for reports: "1.10.8".
std::string hdf5_version();

/// At least what write_shard() will need for these pieces, whose data may be null.
std::uint64_t shard_bytes_bound(std::span<const TensorPiece> pieces);

/// All of a shard that is no tensor's, which HDF5 takes a while to make: for shards of the same
/// pieces.
struct ShardStructure {
  ShardRecord record;  // without hashes of tensors
  std::vector<std::byte> bytes;
};

/// Writes `directory`/shard_name(index), which must not exist yet. `pieces` may be empty (a rank
/// that owns nothing). Failures: no space, no permission, ...: clean, before the first tensor is
/// written where the file system can reserve space. `beat`: for each chunk. `kept`: the structure
/// of the last shard, which is made anew if it is none of these pieces.
ShardRecord write_shard(const std::string& directory, std::size_t index,
                        std::span<const TensorPiece> pieces, const Beat& beat = {},
                        ShardStructure* kept = nullptr);

}  // namespace concertina
