#include "io/checkpoint/checkpoint_view.h"

#include <algorithm>

#include "io/checkpoint/hdf5_handle.h"
#include "io/file.h"
#include "io/sha256.h"

namespace concertina {
namespace {

/// Maps one stored piece into the virtual dataset that is created with `properties`.
void map_piece(hid_t properties, const ShardRecord& shard, const StoredPiece& piece,
               const std::string& part) {
  const std::string source = dataset_name(piece.tensor, part, piece.offset);
  const std::vector<hsize_t> dims(piece.shape.begin(), piece.shape.end());
  hsize_t done = 0;
  for (const Box& box : boxes_of_range(piece.shape, piece.offset, piece.offset + piece.count)) {
    const std::vector<hsize_t> start(box.start.begin(), box.start.end());
    const std::vector<hsize_t> count(box.count.begin(), box.count.end());
    hsize_t elements = 1;
    for (const hsize_t n : count) elements *= n;
    const Hid to = make_dataspace(dims, source);
    check_hdf5(
        H5Sselect_hyperslab(to, H5S_SELECT_SET, start.data(), nullptr, count.data(), nullptr),
        "H5Sselect_hyperslab", source);
    const Hid from = make_dataspace({piece.count}, source);
    check_hdf5(H5Sselect_hyperslab(from, H5S_SELECT_SET, &done, nullptr, &elements, nullptr),
               "H5Sselect_hyperslab", source);
    check_hdf5(H5Pset_virtual(properties, to, shard.file.c_str(), source.c_str(), from),
               "H5Pset_virtual", source);
    done += elements;
  }
}

void build(const Hdf5Image& image, const std::vector<ShardRecord>& shards) {
  const Hid file = image.open(Hdf5Image::Access::create);
  for (const auto& [tensor, places] : index_pieces(shards)) {
    const StoredPiece& first = shards[places[0].first].pieces[places[0].second];
    const std::vector<hsize_t> dims(first.shape.begin(), first.shape.end());
    for (const StoredPart& part : first.parts) {
      const std::string name = tensor + "/" + part.name;
      const Hid properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "H5Pcreate", name);
      for (const auto& [shard, piece] : places)
        map_piece(properties, shards[shard], shards[shard].pieces[piece], part.name);
      make_dataset(file, name, dims, properties);
    }
  }
}

/// Returns an upper bound on the file size, about twice the measured size; see shard_bytes_bound().
std::uint64_t bytes_bound(const std::vector<ShardRecord>& shards) {
  std::uint64_t bytes = 64 << 10;
  for (const auto& [tensor, places] : index_pieces(shards)) {
    std::uint64_t mappings = 0;
    for (const auto& [shard, place] : places) {
      const StoredPiece& piece = shards[shard].pieces[place];
      mappings += boxes_of_range(piece.shape, piece.offset, piece.offset + piece.count).size();
    }
    const StoredPiece& first = shards[places[0].first].pieces[places[0].second];
    const std::uint64_t mapping = 192 + 32 * first.shape.size() + 2 * tensor.size();
    bytes += first.parts.size() * ((8 << 10) + mappings * mapping);
  }
  return bytes;
}

}  // namespace

std::vector<Box> boxes_of_range(const std::vector<std::int64_t>& shape, std::uint64_t begin,
                                std::uint64_t end) {
  std::vector<Box> boxes;
  while (begin < end) {  // the largest box that starts here
    std::size_t axis = shape.size() - 1;
    std::uint64_t inner = 1;  // elements per index of `axis`
    for (; axis > 0; --axis) {
      const std::uint64_t whole = inner * shape[axis];
      if (begin % whole != 0 || end - begin < whole) break;
      inner = whole;
    }
    Box box{std::vector<std::uint64_t>(shape.size()), {shape.begin(), shape.end()}};
    std::uint64_t rest = begin;
    for (std::size_t i = shape.size(); i-- > 0; rest /= shape[i]) box.start[i] = rest % shape[i];
    std::fill_n(box.count.begin(), axis, 1);
    box.count[axis] = std::min(box.count[axis] - box.start[axis], (end - begin) / inner);
    begin += box.count[axis] * inner;
    boxes.push_back(std::move(box));
  }
  return boxes;
}

ViewRecord write_view(const std::string& directory, const std::vector<ShardRecord>& shards) {
  const std::string path = directory + "/" + kViewName;
  File file(path, File::Mode::create);
  file.reserve(bytes_bound(shards));
  const Hdf5Image image(path, H5F_LIBVER_LATEST);
  build(image, shards);
  std::vector<std::byte> content(image.file().size());
  image.file().read_at(0, content);
  file.truncate(content.size());
  file.write_at(0, content);
  file.sync();
  file.close();
  return {content.size(), sha256_hex(content)};
}

}  // namespace concertina
