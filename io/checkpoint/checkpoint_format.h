// The contents of a checkpoint as values: tensors are split into pieces, which are in shards.
// Invariant: a Manifest accepted by `validate` covers every part of every tensor exactly once, and
// arithmetic with its numbers cannot overflow.
//
// io/README.md specifies the format: the files, the manifest, what a reader must check, and the
// commit protocol.
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

/// One kind of state of a piece, in memory: "weight", "m", "v", or another optimizer state.
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

/// A StatePart in a file: count * 4 bytes at offset `at` of the shard.
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

/// One shard file. write_shard() returns it, and ranks send it to the rank that commits.
struct ShardRecord {
  std::string file;  // shard_name(index)
  std::uint64_t bytes = 0;
  std::string skeleton_sha256;  // of all bytes outside tensors, in file order
  std::vector<StoredPiece> pieces;
};

/// The file model.h5, which is never used to restore state.
struct ViewRecord {
  std::uint64_t bytes = 0;
  std::string sha256;
};

struct Manifest {
  std::int64_t step = 0;
  nlohmann::json metadata;  // set by the caller: config digest, data cursor, ...
  std::vector<ShardRecord> shards;
  ViewRecord view;
};

/// Called after each chunk of a long read or write; may be empty.
using Beat = std::function<void()>;

inline constexpr const char* kManifestName = "manifest.json";
inline constexpr const char* kManifestHashName = "manifest.sha256";
inline constexpr const char* kViewName = "model.h5";
std::string shard_name(std::size_t index);
/// Returns the content of manifest.sha256 for a manifest with this hash.
std::string manifest_hash_line(const std::string& sha256);

nlohmann::json to_json(const ShardRecord& record);
nlohmann::json to_json(const Manifest& manifest);
/// Checks types and limits, but not coverage. Throws Error{bad_input} with `where`.
ShardRecord parse_shard_record(const nlohmann::json& json, const std::string& where);
Manifest parse_manifest(const std::string& text, const std::string& where);

/// Returns the number of elements of a tensor. Throws Error{bad_input} for zero or more than 8
/// dimensions, a dimension below 1, or a product above 2^48.
std::uint64_t element_count(const std::vector<std::int64_t>& shape, const std::string& where);

/// Throws Error{bad_input} naming the tensor unless the parts of each shard are disjoint and within
/// the file, and the pieces of each tensor agree on shape and parts and cover it exactly once.
void validate(const std::vector<ShardRecord>& shards, const std::string& where);

/// Lists the pieces of every tensor, ascending by offset, as (shard, piece in shard).
using PieceIndex = std::map<std::string, std::vector<std::pair<std::size_t, std::size_t>>>;
PieceIndex index_pieces(const std::vector<ShardRecord>& shards);

/// Bytes [begin, end) of a file. skeleton_ranges() returns the ranges outside tensors, ascending.
struct ByteRange {
  std::uint64_t begin = 0, end = 0;
};
std::vector<ByteRange> skeleton_ranges(const ShardRecord& record);

}  // namespace concertina
