// Writes one rank's shard of a checkpoint (checkpoint_format.h).
// Invariant: hashes are of memory, never of what a disk gave back; when write_shard returns, the
// bytes are on the storage, and when it throws, no file is left.
#pragma once

#include <span>
#include <string>

#include "io/checkpoint_format.h"

namespace concertina {

/// At least what write_shard() will need for these pieces, whose data may be null.
std::uint64_t shard_bytes_bound(std::span<const TensorPiece> pieces);

/// Writes `directory`/shard_name(index), which must not exist yet. `pieces` may be empty (a rank
/// that owns nothing). Failures: no space, no permission, ...: clean, before the first tensor is
/// written where the file system can reserve space. `beat`: for each chunk.
ShardRecord write_shard(const std::string& directory, std::size_t index,
                        std::span<const TensorPiece> pieces, const Beat& beat = {});

}  // namespace concertina
