#include "io/checkpoint/checkpoint_shard.h"

#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <future>

#include "core/error.h"
#include "io/checkpoint/hdf5_handle.h"
#include "io/file.h"
#include "io/sha256.h"

namespace concertina {
namespace {

constexpr std::size_t kChunk = std::size_t{1} << 20;  // per write
constexpr std::uint64_t kPage = 4096;

void check_piece(const TensorPiece& piece, const std::string& where) {
  const std::uint64_t total = element_count(piece.shape, where + ", " + piece.name);
  CONCERTINA_CHECK(!piece.name.empty() && piece.count >= 1 && piece.offset <= total &&
                       piece.count <= total - piece.offset && !piece.parts.empty(),
                   "invalid piece of '{}': elements [{}, +{}) of {}, {} parts", piece.name,
                   piece.offset, piece.count, total, piece.parts.size());
}

/// Adds a dataset without data and returns its final offset in the file.
std::uint64_t add_dataset(hid_t file, const TensorPiece& piece, const StatePart& part) {
  const std::string name = dataset_name(piece.name, part.name, piece.offset);
  const Hid properties(H5Pcreate(H5P_DATASET_CREATE), H5Pclose, "H5Pcreate", name);
  check_hdf5(H5Pset_layout(properties, H5D_CONTIGUOUS), "H5Pset_layout", name);
  check_hdf5(H5Pset_alloc_time(properties, H5D_ALLOC_TIME_EARLY), "H5Pset_alloc_time", name);
  check_hdf5(H5Pset_fill_time(properties, H5D_FILL_TIME_NEVER), "H5Pset_fill_time", name);
  const Hid dataset = make_dataset(file, name, {piece.count}, properties);
  write_attribute(dataset, "shape", piece.shape);
  write_attribute(dataset, "offset", {static_cast<std::int64_t>(piece.offset)});
  const haddr_t at = H5Dget_offset(dataset);
  if (at == HADDR_UNDEF) throw_failure("H5Dget_offset failed", name);
  return at;
}

/// Lays out the file in memory; the record lacks only the hashes.
ShardRecord lay_out(const Hdf5Image& image, std::size_t index,
                    std::span<const TensorPiece> pieces) {
  ShardRecord record;
  record.file = shard_name(index);
  {
    const Hid file = image.open(Hdf5Image::Access::create);
    for (const TensorPiece& piece : pieces) {
      StoredPiece stored{piece.name, piece.shape, piece.offset, piece.count, {}};
      for (const StatePart& part : piece.parts)
        stored.parts.push_back({part.name, add_dataset(file, piece, part), {}});
      record.pieces.push_back(std::move(stored));
    }
  }
  record.bytes = image.file().size();
  return record;
}

/// Reads the layout back before any tensor is written, to verify that HDF5 closed the file intact.
void verify_layout(const Hdf5Image& image, const ShardRecord& record) {
  const Hid file = image.open(Hdf5Image::Access::read);
  for (const StoredPiece& piece : record.pieces)
    for (const StoredPart& part : piece.parts) {
      const std::string name = dataset_name(piece.tensor, part.name, piece.offset);
      const Hid dataset(H5Dopen2(file, name.c_str(), H5P_DEFAULT), H5Dclose, "H5Dopen2", name);
      CONCERTINA_CHECK(H5Dget_offset(dataset) == part.at &&
                           H5Dget_storage_size(dataset) == piece.count * sizeof(float),
                       "HDF5 moved the data of '{}'", name);
    }
}

bool same_parts(const StoredPiece& stored, const TensorPiece& piece) {
  return stored.tensor == piece.name && stored.shape == piece.shape &&
         stored.offset == piece.offset && stored.count == piece.count &&
         std::ranges::equal(stored.parts, piece.parts, {}, &StoredPart::name, &StatePart::name);
}

/// Returns the structure of a shard of these pieces, with its hash; `path` is for messages.
ShardStructure make_structure(const std::string& path, std::size_t index,
                              std::span<const TensorPiece> pieces) {
  const Hdf5Image image(path, H5F_LIBVER_V18);
  ShardStructure structure{lay_out(image, index, pieces), {}};
  verify_layout(image, structure.record);
  for (const ByteRange& range : skeleton_ranges(structure.record)) {
    const std::size_t at = structure.bytes.size();
    structure.bytes.resize(at + range.end - range.begin);
    image.file().read_at(range.begin, std::span(structure.bytes).subspan(at));
  }
  structure.record.skeleton_sha256 = sha256_hex(structure.bytes);
  return structure;
}

void write_structure(File& file, const ShardStructure& structure) {
  std::span<const std::byte> bytes = structure.bytes;
  for (const ByteRange& range : skeleton_ranges(structure.record)) {
    file.write_at(range.begin, bytes.first(range.end - range.begin));
    bytes = bytes.subspan(range.end - range.begin);
  }
}

void write_tensor(File& file, std::uint64_t at, std::span<const std::byte> bytes,
                  const Beat& beat) {
  while (!bytes.empty()) {
    const auto chunk = bytes.first(std::min(kChunk, bytes.size()));
    file.write_at(at, chunk);
    // Starts writing back early; if that is not supported, sync() does all the work.
    (void)::sync_file_range(file.descriptor(), static_cast<off64_t>(at),
                            static_cast<off64_t>(chunk.size()), SYNC_FILE_RANGE_WRITE);
    if (beat) beat();
    at += chunk.size();
    bytes = bytes.subspan(chunk.size());
  }
}

/// Calls `see(stored, bytes)` for each part.
template <class See>
void each_part(ShardRecord& record, std::span<const TensorPiece> pieces, const See& see) {
  for (std::size_t p = 0; p < pieces.size(); ++p)
    for (std::size_t s = 0; s < pieces[p].parts.size(); ++s)
      see(record.pieces[p].parts[s],
          std::as_bytes(std::span(pieces[p].parts[s].data, pieces[p].count)));
}

ShardRecord fill(File& file, const ShardStructure& structure, std::span<const TensorPiece> pieces,
                 const Beat& beat) {
  ShardRecord record = structure.record;
  // Hashing takes about as long as writing, so both run in parallel.
  std::future<void> hashes = std::async(std::launch::async, [&] {
    each_part(record, pieces, [](StoredPart& stored, std::span<const std::byte> bytes) {
      stored.sha256 = sha256_hex(bytes);
    });
  });
  file.truncate(record.bytes);
  file.reserve(record.bytes);
  write_structure(file, structure);
  each_part(record, pieces, [&](const StoredPart& stored, std::span<const std::byte> bytes) {
    write_tensor(file, stored.at, bytes, beat);
  });
  file.sync();
  file.close();
  hashes.get();
  return record;
}

}  // namespace

std::string hdf5_version() {
  unsigned major = 0, minor = 0, release = 0;
  return H5get_libversion(&major, &minor, &release) < 0
             ? "unknown"
             : fmt::format("{}.{}.{}", major, minor, release);
}

std::uint64_t shard_bytes_bound(std::span<const TensorPiece> pieces) {
  std::uint64_t bytes = 16 * kPage;
  for (const TensorPiece& piece : pieces) {
    const std::uint64_t data = (piece.count * sizeof(float) + kPage - 1) / kPage * kPage;
    bytes += 2 * kPage + piece.parts.size() * (data + kPage);
  }
  return bytes;
}

ShardRecord write_shard(const std::string& directory, std::size_t index,
                        std::span<const TensorPiece> pieces, const Beat& beat,
                        ShardStructure* kept) {
  const std::string path = directory + "/" + shard_name(index);
  for (const TensorPiece& piece : pieces) check_piece(piece, path);
  File file(path, File::Mode::create);
  try {
    // Reserving first turns a full disk or a file-size limit into an error outside HDF5.
    file.reserve(shard_bytes_bound(pieces));
    ShardStructure made;
    ShardStructure& structure = kept != nullptr ? *kept : made;
    if (structure.record.file != shard_name(index) ||
        !std::ranges::equal(structure.record.pieces, pieces, same_parts))
      structure = make_structure(path, index, pieces);
    return fill(file, structure, pieces, beat);
  } catch (...) {
    ::unlink(path.c_str());  // frees the space, which metrics and logs may need
    throw;
  }
}

}  // namespace concertina
