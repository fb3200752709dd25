// model.h5 of a checkpoint: whole tensors under their own names and shapes, for h5py and HDF5
// tools. Invariant: a viewing aid only. It holds no data but HDF5 virtual datasets that point into
// the shards beside it, and HDF5 reads zeros, without an error, where a shard is missing: restoring
// goes by the manifest (checkpoint_reader.h).
#pragma once

#include <string>
#include <vector>

#include "io/checkpoint/checkpoint_format.h"

namespace concertina {

/// A box of elements in an N-dimensional array.
struct Box {
  std::vector<std::uint64_t> start, count;
};
/// Elements [begin, end) of the flattened array as at most 2N - 1 boxes, in order.
std::vector<Box> boxes_of_range(const std::vector<std::int64_t>& shape, std::uint64_t begin,
                                std::uint64_t end);

/// Writes `directory`/model.h5 for shards that cover every tensor (validate()).
ViewRecord write_view(const std::string& directory, const std::vector<ShardRecord>& shards);

}  // namespace concertina
