// Reads checkpoints (checkpoint_format.h) without HDF5, so HDF5 never parses a damaged file.
// Invariant: no tensor byte is returned before the SHA-256 of the stored part has matched the
// manifest, and no manifest is parsed before its own SHA-256 has matched.
#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "io/checkpoint/checkpoint_format.h"
#include "io/file.h"

namespace concertina {

/// Returns the validated manifest of a commit. Throws Error{bad_input} if it is damaged, a shard is
/// missing or has the wrong size, or the directory is named for another step.
Manifest open_manifest(const std::string& directory);

struct OpenCommit {
  std::string path;
  Manifest manifest;
  FilePlace place = FilePlace::owned;  // applied to the shards
};
/// Opens the newest commit; returns nothing if there is none. If it is damaged, throws
/// Error{bad_input} naming an intact older one: there is no silent fallback.
std::optional<OpenCommit> open_newest(const std::string& checkpoints);

/// Reads everything and returns one line per problem (file, tensor, fault); empty if intact.
std::vector<std::string> verify(const std::string& directory);

/// Returns advice on the damaged commit `directory`: the newest older intact commit, or the correct
/// name if the directory was renamed.
std::string recovery_advice(const std::string& directory);

/// Reads any range of any tensor, regardless of how it was sharded. Not thread-safe.
class CheckpointReader {
 public:
  explicit CheckpointReader(const std::string& directory);
  explicit CheckpointReader(OpenCommit commit);

  /// Sets a function that is called after each chunk that is read.
  void on_beat(Beat beat) { beat_ = std::move(beat); }

  /// Reads `part` as the weights of all tensors that have it. Throws Error{bad_input} if none has.
  void use_as_weights(const std::string& part);

  const std::string& directory() const { return directory_; }
  const Manifest& manifest() const { return manifest_; }
  /// Returns the names of the tensors, ascending.
  std::vector<std::string> tensors() const;
  bool contains(const std::string& tensor) const { return index_.contains(tensor); }
  /// Throws Error{bad_input} if the checkpoint does not have this tensor.
  const std::vector<std::int64_t>& shape(const std::string& tensor) const;

  /// Returns the shards with any of the elements [offset, offset + count) of `tensor`.
  std::set<std::size_t> shards_of(const std::string& tensor, std::uint64_t offset,
                                  std::uint64_t count) const;

  /// Reads elements [offset, offset + out.size()) of the flattened `part` of `tensor`. Each stored
  /// part that overlaps the range is read completely and verified, every time. Throws
  /// Error{bad_input} if the tensor, part or range does not exist or a stored part is damaged; the
  /// content of `out` is then unspecified.
  void read(const std::string& tensor, const std::string& part, std::uint64_t offset,
            std::span<float> out);

  /// A range of elements of a part of a tensor, and its destination.
  struct Range {
    std::string tensor, part;
    std::uint64_t offset = 0;
    std::span<float> out;
  };
  /// Calls read() for all ranges, with one thread per core of this process.
  void read(std::span<const Range> ranges);

 private:
  void read_range(const Range& range, const Beat& beat) const;
  const std::vector<std::pair<std::size_t, std::size_t>>& places(const std::string& tensor) const;
  void read_piece(std::size_t shard, const StoredPiece& piece, const std::string& part,
                  std::uint64_t begin, std::span<float> out, const Beat& beat) const;

  std::string directory_;
  FilePlace place_;
  Beat beat_;
  Manifest manifest_;
  PieceIndex index_;
  std::string weights_ = "weight";
};

}  // namespace concertina
