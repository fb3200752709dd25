// Reads checkpoints (checkpoint_format.h) without HDF5, so that no damaged header can reach it.
// Invariant: no byte of a tensor is handed out before the SHA-256 of the stored part that holds it
// has been found equal to the manifest's, and no manifest is parsed before its own.
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

/// The manifest of a commit, validated; shards are there with the right sizes, and the name is not
/// that of another step's commit. Input errors name what is wrong and in which file.
Manifest open_manifest(const std::string& directory);

struct OpenCommit {
  std::string path;
  Manifest manifest;
  FilePlace place = FilePlace::owned;  // of the shards
};
/// The newest commit, or nothing if there is none. If it is damaged: an input error that says
/// which older one is intact; never a silent fallback.
std::optional<OpenCommit> open_newest(const std::string& checkpoints);

/// Reads everything; one line a problem (file, tensor, what), none if all is as it was written.
std::vector<std::string> verify(const std::string& directory);

/// Returns advice on the damaged commit `directory`: the newest older commit that verifies, or the
/// name that it had.
std::string recovery_advice(const std::string& directory);

/// Any range of any tensor, however it was cut into shards. Not for several threads at once.
class CheckpointReader {
 public:
  explicit CheckpointReader(const std::string& directory);
  explicit CheckpointReader(OpenCommit commit);

  /// `beat` is called after each chunk that is read.
  void on_beat(Beat beat) { beat_ = std::move(beat); }

  const std::string& directory() const { return directory_; }
  const Manifest& manifest() const { return manifest_; }
  /// Ascending by name.
  std::vector<std::string> tensors() const;
  /// Input error if the checkpoint has no such tensor.
  const std::vector<std::int64_t>& shape(const std::string& tensor) const;

  /// The shards that have some of `count` elements of `tensor` from `offset` on.
  std::set<std::size_t> shards_of(const std::string& tensor, std::uint64_t offset,
                                  std::uint64_t count) const;

  /// Elements [offset, offset + out.size()) of the flattened `part` of `tensor`. Every stored part
  /// that has some of them is read as a whole and verified, each time. On an error `out` holds
  /// nothing of use. Input errors: no such tensor or part, a range beyond it, a stored part that is
  /// not what was written.
  void read(const std::string& tensor, const std::string& part, std::uint64_t offset,
            std::span<float> out);

  /// Elements of a part of a tensor, and where they go.
  struct Range {
    std::string tensor, part;
    std::uint64_t offset = 0;
    std::span<float> out;
  };
  /// read() of all of them, on as many threads as this process has cores.
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
};

}  // namespace concertina
