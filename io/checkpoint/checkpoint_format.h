// The content of a checkpoint, as values: tensors cut into pieces, pieces kept in shards.
// Invariant: a Manifest that `validate` let pass covers every part of every tensor exactly once,
// and every number in it is safe to compute with.
//
// io/README.md specifies the format: the files of a checkpoint, the manifest, what a reader must
// check, and the commit protocol.
#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

namespace concertina {

/// One kind of state of a piece, in memory: "weight", "m", "v", or what the optimizer calls it.
struct StatePart {
  std::string name;
  const float* data = nullptr;  // TensorPiece::count elements
};

/// Elements [offset, offset + count) of the flattened tensor.
struct TensorPiece {
  std::string name;                 // "003.mlp/up.weight": unit / parameter
  std::vector<std::int64_t> shape;  // of the whole tensor
  std::size_t offset = 0, count = 0;
  std::vector<StatePart> parts;
};

/// A StatePart on storage: count * 4 bytes at `at` in the shard's file.
struct StoredPart {
  std::string name;
  std::uint64_t at = 0;
  std::string sha256;
};

struct StoredPiece {
  std::string tensor;
  std::vector<std::int64_t> shape;
  std::uint64_t offset = 0, count = 0;  // elements
  std::vector<StoredPart> parts;
};

/// One shard file: what `write_shard` returns and ranks send to the one that commits.
struct ShardRecord {
  std::string file;  // shard_name(index)
  std::uint64_t bytes = 0;
  std::string skeleton_sha256;  // of all bytes that are no tensor's, in file order
  std::vector<StoredPiece> pieces;
};

/// model.h5: nothing is restored from it.
struct ViewRecord {
  std::uint64_t bytes = 0;
  std::string sha256;
};

struct Manifest {
  std::int64_t step = 0;
  nlohmann::json metadata;  // the caller's: config digest, data cursor, ...
  std::vector<ShardRecord> shards;
  ViewRecord view;
};

/// Is called whenever a piece of a long read or write is done; may be empty.
using Beat = std::function<void()>;

inline constexpr const char* kManifestName = "manifest.json";
inline constexpr const char* kManifestHashName = "manifest.sha256";
inline constexpr const char* kViewName = "model.h5";
std::string shard_name(std::size_t index);
/// The content of manifest.sha256 for a manifest with this hash.
std::string manifest_hash_line(const std::string& sha256);

nlohmann::json to_json(const ShardRecord& record);
nlohmann::json to_json(const Manifest& manifest);
/// Checks types and limits, not coverage; `where` is for errors (input errors).
ShardRecord parse_shard_record(const nlohmann::json& json, const std::string& where);
Manifest parse_manifest(const std::string& text, const std::string& where);

/// Elements of a whole tensor. Input error: no dimension, more than 8, one below 1, or a product
/// above 2^48.
std::uint64_t element_count(const std::vector<std::int64_t>& shape, const std::string& where);

/// Throws an input error that names the tensor unless each shard's parts lie apart and within its
/// bytes, and the pieces of each tensor agree on shape and parts and cover it exactly once.
void validate(const std::vector<ShardRecord>& shards, const std::string& where);

/// The pieces of every tensor, ascending by offset: (shard, piece in shard).
using PieceIndex = std::map<std::string, std::vector<std::pair<std::size_t, std::size_t>>>;
PieceIndex index_pieces(const std::vector<ShardRecord>& shards);

/// Bytes [begin, end) of the file that belong to no tensor, ascending.
struct ByteRange {
  std::uint64_t begin = 0, end = 0;
};
std::vector<ByteRange> skeleton_ranges(const ShardRecord& record);

}  // namespace concertina
