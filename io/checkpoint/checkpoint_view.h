// A checkpoint's model.h5: whole tensors with their names and shapes, for h5py and HDF5 tools.
// Invariant: it is only for viewing. It contains only HDF5 virtual datasets that refer to the
// shards next to it. HDF5 silently reads zeros if a shard is missing, so state is restored from the
// manifest (checkpoint_reader.h).
#pragma once

#include <string>
#include <vector>

#include "io/checkpoint/checkpoint_format.h"

namespace concertina {

/// A box of elements of an N-dimensional array.
struct Box {
  std::vector<std::uint64_t> start, count;
};
/// Returns elements [begin, end) of the flattened array as at most 2N - 1 boxes, in order.
std::vector<Box> boxes_of_range(const std::vector<std::int64_t>& shape, std::uint64_t begin,
                                std::uint64_t end);

/// Writes `directory`/model.h5 for shards that cover every tensor (validate()).
ViewRecord write_view(const std::string& directory, const std::vector<ShardRecord>& shards);

}  // namespace concertina
