#include "io/checkpoint/checkpoint_format.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "core/error.h"

namespace concertina {
namespace {

constexpr const char* kAdvice = "use another checkpoint; this one is damaged or incomplete";
constexpr std::uint64_t kMaxElements = std::uint64_t{1} << 48;

[[noreturn]] void reject(const std::string& what, const std::string& where) {
  throw_input(what, where, kAdvice);
}

std::uint64_t bytes_of(const StoredPiece& piece) {
  return piece.count * sizeof(float);
}

/// Returns the ranges of all tensor data in a shard, ascending; throws if they overlap.
std::vector<ByteRange> data_ranges(const ShardRecord& record, const std::string& where) {
  std::vector<ByteRange> ranges;
  for (const StoredPiece& piece : record.pieces)
    for (const StoredPart& part : piece.parts) {
      if (part.at > record.bytes || bytes_of(piece) > record.bytes - part.at)
        reject(fmt::format("'{}' of '{}' extends beyond the end of {}", part.name, piece.tensor,
                           record.file),
               where);
      ranges.push_back({part.at, part.at + bytes_of(piece)});
    }
  std::sort(ranges.begin(), ranges.end(),
            [](const ByteRange& a, const ByteRange& b) { return a.begin < b.begin; });
  for (std::size_t i = 1; i < ranges.size(); ++i)
    if (ranges[i].begin < ranges[i - 1].end)
      reject(fmt::format("two tensors share byte {} of {}", ranges[i].begin, record.file), where);
  return ranges;
}

std::set<std::string> part_names(const StoredPiece& piece, const std::string& where) {
  std::set<std::string> names;
  for (const StoredPart& part : piece.parts)
    if (!names.insert(part.name).second)
      reject(fmt::format("a piece of '{}' has two parts named '{}'", piece.tensor, part.name),
             where);
  if (names.empty()) reject(fmt::format("a piece of '{}' has no parts", piece.tensor), where);
  return names;
}

/// `pieces`: all pieces of one tensor, ascending by offset.
void validate_tensor(const std::string& name, const std::vector<const StoredPiece*>& pieces,
                     const std::string& where) {
  const StoredPiece& first = *pieces.front();
  const std::uint64_t total = element_count(first.shape, where);
  const std::set<std::string> parts = part_names(first, where);
  std::uint64_t covered = 0;
  for (const StoredPiece* piece : pieces) {
    if (piece->shape != first.shape)
      reject(fmt::format("pieces of '{}' have different shapes: [{}] and [{}]", name,
                         fmt::join(first.shape, ", "), fmt::join(piece->shape, ", ")),
             where);
    if (part_names(*piece, where) != parts)
      reject(fmt::format("pieces of '{}' have different parts", name), where);
    if (piece->offset < covered)
      reject(fmt::format("duplicate elements in '{1}' at index {0}", piece->offset, name), where);
    if (piece->offset > covered)
      reject(fmt::format("elements [{}, {}) of '{}' are missing", covered, piece->offset, name),
             where);
    if (piece->count < 1 || piece->count > total - covered)
      reject(fmt::format("a piece of '{}' has {} elements at offset {}, but the tensor has {}",
                         name, piece->count, piece->offset, total),
             where);
    covered += piece->count;
  }
  if (covered != total)
    reject(fmt::format("elements [{}, {}) of '{}' are missing", covered, total, name), where);
}

}  // namespace

std::string shard_name(std::size_t index) {
  return fmt::format("shard-{:05}.h5", index);
}

std::string manifest_hash_line(const std::string& sha256) {
  return fmt::format("{}  {}\n", sha256, kManifestName);
}

std::uint64_t element_count(const std::vector<std::int64_t>& shape, const std::string& where) {
  if (shape.empty() || shape.size() > 8)
    reject(fmt::format("expected a tensor of 1 to 8 dimensions, got {}", shape.size()), where);
  std::uint64_t count = 1;
  for (const std::int64_t dim : shape) {
    if (dim < 1 || static_cast<std::uint64_t>(dim) > kMaxElements / count)
      reject(fmt::format("invalid tensor shape [{}]", fmt::join(shape, ", ")), where);
    count *= static_cast<std::uint64_t>(dim);
  }
  return count;
}

void validate(const std::vector<ShardRecord>& shards, const std::string& where) {
  for (std::size_t i = 0; i < shards.size(); ++i) {
    if (shards[i].file != shard_name(i))
      reject(fmt::format("shard {} is named '{}', not '{}'", i, shards[i].file, shard_name(i)),
             where);
    for (const StoredPiece& piece : shards[i].pieces)
      if (piece.count > kMaxElements || piece.offset > kMaxElements)
        reject(fmt::format("a piece of '{}' has {} elements at offset {}", piece.tensor,
                           piece.count, piece.offset),
               where);
    data_ranges(shards[i], where);
  }
  for (const auto& [name, places] : index_pieces(shards)) {
    std::vector<const StoredPiece*> pieces;
    for (const auto& [shard, piece] : places) pieces.push_back(&shards[shard].pieces[piece]);
    validate_tensor(name, pieces, where);
  }
}

PieceIndex index_pieces(const std::vector<ShardRecord>& shards) {
  PieceIndex index;
  for (std::size_t s = 0; s < shards.size(); ++s)
    for (std::size_t p = 0; p < shards[s].pieces.size(); ++p)
      index[shards[s].pieces[p].tensor].emplace_back(s, p);
  for (auto& [name, places] : index)
    std::sort(places.begin(), places.end(), [&](const auto& a, const auto& b) {
      return shards[a.first].pieces[a.second].offset < shards[b.first].pieces[b.second].offset;
    });
  return index;
}

std::vector<ByteRange> skeleton_ranges(const ShardRecord& record) {
  std::vector<ByteRange> gaps;
  std::uint64_t begin = 0;
  for (const ByteRange& data : data_ranges(record, record.file)) {
    if (begin < data.begin) gaps.push_back({begin, data.begin});
    begin = data.end;
  }
  if (begin < record.bytes) gaps.push_back({begin, record.bytes});
  return gaps;
}

}  // namespace concertina
