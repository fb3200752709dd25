// Writes one rank's shard of a checkpoint (checkpoint_format.h). Invariant: hashes are computed
// from memory, never from data read back from disk. When write_shard() returns, the data is on
// stable storage; when it throws, no file remains.
#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <vector>

#include "io/checkpoint/checkpoint_format.h"

namespace concertina {

/// Returns the version of HDF5, for reports: "1.10.8".
std::string hdf5_version();

/// Returns an upper bound on the size of a shard of these pieces, whose data may be null.
std::uint64_t shard_bytes_bound(std::span<const TensorPiece> pieces);

/// Everything in a shard except tensor data. Creating it with HDF5 is slow, so it is reused for
/// shards of the same pieces.
struct ShardStructure {
  ShardRecord record;  // without the hashes of tensors
  std::vector<std::byte> bytes;
};

/// Writes `directory`/shard_name(index), which must not exist. `pieces` may be empty (for a rank
/// that owns nothing). Failures such as a full disk are reported before the first tensor is written
/// if the file system can reserve space. Calls `beat` after each chunk. `kept` is the structure of
/// the last shard and is rebuilt if the pieces differ.
ShardRecord write_shard(const std::string& directory, std::size_t index,
                        std::span<const TensorPiece> pieces, const Beat& beat = {},
                        ShardStructure* kept = nullptr);

}  // namespace concertina
