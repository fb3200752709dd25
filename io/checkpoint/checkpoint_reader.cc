#include "io/checkpoint/checkpoint_reader.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <bit>
#include <cstring>
#include <filesystem>

#include "core/error.h"
#include "io/checkpoint/checkpoint_commit.h"
#include "io/checkpoint/part_hash.h"
#include "io/file.h"
#include "io/for_all.h"
#include "io/sha256.h"

namespace concertina {

static_assert(std::endian::native == std::endian::little, "tensors are stored little-endian");

namespace {

constexpr std::size_t kReadChunk = std::size_t{1} << 20;
constexpr std::uint64_t kMaxManifest = std::uint64_t{256} << 20;

/// Hashes bytes [begin, begin + bytes) of `file` and calls `use(at, chunk)` for each chunk. `out`
/// is a buffer for all bytes, or empty.
template <class Hash, class Use>
void hash_range(const File& file, std::uint64_t begin, std::uint64_t bytes, Hash& hash, Use use,
                std::span<std::byte> out = {}) {
  const std::uint64_t most = std::min<std::uint64_t>(kReadChunk, bytes);
  std::vector<std::byte> buffer(out.empty() ? most : 0);
  for (std::uint64_t done = 0; done < bytes; done += most) {
    const std::uint64_t count = std::min(most, bytes - done);
    const auto chunk = out.empty() ? std::span(buffer).first(count) : out.subspan(done, count);
    file.read_at(begin + done, chunk);
    hash.update(chunk);
    use(done, chunk);
  }
}

/// Returns an empty string if `path` is a file of `bytes` bytes, otherwise the problem.
std::string size_problem(const std::string& path, std::uint64_t bytes) {
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0) return std::strerror(errno);
  if (!S_ISREG(status.st_mode)) return "not a regular file";
  if (const auto size = static_cast<std::uint64_t>(status.st_size); size != bytes)
    return fmt::format("has {} bytes, but {} were written", size, bytes);
  return {};
}

/// Returns the text of the manifest after verifying its hash.
std::string read_manifest_text(const std::string& directory) {
  const std::string path = directory + "/" + kManifestName;
  struct stat status {};
  if (::stat(path.c_str(), &status) != 0)
    throw_input(fmt::format("not a checkpoint: no {} ({})", kManifestName, std::strerror(errno)),
                directory, "use a directory such as runs/NAME/checkpoints/step-00000100");
  const std::string hash_path = directory + "/" + kManifestHashName;
  if (::stat(hash_path.c_str(), &status) != 0)
    throw_input(fmt::format("{} is missing ({})", kManifestHashName, std::strerror(errno)),
                hash_path, "restore the file, or use another checkpoint");
  const std::string text = read_file(path, kMaxManifest, FilePlace::owned);
  const std::string expected = read_file(hash_path, 1024, FilePlace::owned);
  if (manifest_hash_line(sha256_hex(text)) != expected)
    throw_input(fmt::format("{} is damaged: its SHA-256 does not match {}", kManifestName,
                            kManifestHashName),
                path, "use another checkpoint");
  return text;
}

void verify_shard(const std::string& directory, const ShardRecord& shard,
                  std::vector<std::string>& problems) {
  const std::string path = directory + "/" + shard.file;
  const File file = open_regular(path, FilePlace::owned);
  const auto ignore = [](std::uint64_t, std::span<const std::byte>) {};
  for (const StoredPiece& piece : shard.pieces)
    for (const StoredPart& part : piece.parts) {
      PartHash hash(part.sha256);
      hash_range(file, part.at, piece.count * sizeof(float), hash, ignore);
      if (hash.text() != part.sha256)
        problems.push_back(fmt::format("{}: '{}' of '{}', elements [{}, {}), is damaged", path,
                                       part.name, piece.tensor, piece.offset,
                                       piece.offset + piece.count));
    }
  Sha256 hash;
  for (const ByteRange& range : skeleton_ranges(shard))
    hash_range(file, range.begin, range.end - range.begin, hash, ignore);
  if (hash.hex() != shard.skeleton_sha256)
    problems.push_back(
        fmt::format("{}: the HDF5 structure is damaged (tensors are checked "
                    "separately)",
                    path));
}

void verify_view(const std::string& directory, const ViewRecord& view,
                 std::vector<std::string>& problems) {
  const std::string path = directory + "/" + kViewName;
  std::string problem = size_problem(path, view.bytes);
  // model.h5 contains one entry per stored part, like the manifest, so the same limit applies.
  if (problem.empty() && sha256_hex(read_file(path, kMaxManifest)) != view.sha256)
    problem = "damaged";
  if (!problem.empty())
    problems.push_back(fmt::format("{}: {} (this file is only for viewing)", path, problem));
}

/// Whether the directory is named for another step. Copies may have any other name.
bool is_misnamed(const Manifest& manifest, const std::string& directory) {
  return named_step(directory).value_or(manifest.step) != manifest.step;
}

std::string naming_advice(const Manifest& manifest) {
  return fmt::format("rename the directory to {}", commit_name(manifest.step));
}

std::string describe(const Error& error) {
  return fmt::format("{}: {}", error.where(), error.message());
}

/// Returns the part `name` of a piece; null if it has none.
const StoredPart* part_of(const StoredPiece& piece, std::string_view name) {
  const auto part = std::ranges::find(piece.parts, name, &StoredPart::name);
  return part == piece.parts.end() ? nullptr : &*part;
}

}  // namespace

Manifest open_manifest(const std::string& directory) {
  const std::string path = directory + "/" + kManifestName;
  Manifest manifest = parse_manifest(read_manifest_text(directory), path);
  validate(manifest.shards, path);
  if (is_misnamed(manifest, directory))
    throw_input(fmt::format("the name of the checkpoint does not match its step {}", manifest.step),
                directory, naming_advice(manifest));
  for (const ShardRecord& shard : manifest.shards) {
    const std::string file = directory + "/" + shard.file;
    if (const std::string problem = size_problem(file, shard.bytes); !problem.empty())
      throw_input(fmt::format("{} is damaged: {}", shard.file, problem), file,
                  "restore the file, or use another checkpoint");
  }
  return manifest;
}

std::optional<OpenCommit> open_newest(const std::string& checkpoints) {
  for (;;) {
    const std::optional<Commit> commit = newest_commit(checkpoints);
    if (!commit) return std::nullopt;
    try {
      return OpenCommit{commit->path, open_manifest(commit->path)};
    } catch (const Error& error) {
      // The run that owns it may have removed it: look for a newer one.
      if (!exists_at(commit->path)) continue;
      throw_input("the newest checkpoint cannot be used: " + error.message(), error.where(),
                  recovery_advice(commit->path));
    }
  }
}

std::vector<std::string> verify(const std::string& directory) {
  std::vector<std::string> problems;
  try {
    const Manifest manifest = open_manifest(directory);
    for (const ShardRecord& shard : manifest.shards) verify_shard(directory, shard, problems);
    verify_view(directory, manifest.view, problems);
  } catch (const Error& error) {
    problems.push_back(describe(error));
  }
  return problems;
}

std::string recovery_advice(const std::string& directory) {
  try {
    const Manifest manifest = parse_manifest(read_manifest_text(directory), directory);
    if (is_misnamed(manifest, directory)) return naming_advice(manifest);
  } catch (const Error&) {  // damaged in another way
  }
  std::filesystem::path path(directory);
  if (!path.has_filename()) path = path.parent_path();  // a trailing '/'
  const std::string parent = path.has_parent_path() ? path.parent_path().string() : ".";
  std::vector<Commit> older = list_commits(parent);
  // Search by name: the list is ordered by step, not by name.
  const auto damaged = std::find_if(older.begin(), older.end(), [&](const Commit& commit) {
    return std::filesystem::path(commit.path).filename() == path.filename();
  });
  older.erase(damaged, older.end());
  for (auto commit = older.rbegin(); commit != older.rend(); ++commit)
    if (verify(commit->path).empty())
      return fmt::format("{} is intact; move {} away to resume from it", commit->path, directory);
  return fmt::format("no older checkpoint is intact; move {} away to start over", directory);
}

CheckpointReader::CheckpointReader(const std::string& directory)
    : CheckpointReader(OpenCommit{directory, open_manifest(directory)}) {}

CheckpointReader::CheckpointReader(OpenCommit commit)
    : directory_(std::move(commit.path)),
      place_(commit.place),
      manifest_(std::move(commit.manifest)),
      index_(index_pieces(manifest_.shards)) {}

std::vector<std::string> CheckpointReader::tensors() const {
  std::vector<std::string> names;
  for (const auto& [name, places] : index_) names.push_back(name);
  return names;
}

const std::vector<std::pair<std::size_t, std::size_t>>& CheckpointReader::places(
    const std::string& tensor) const {
  const auto found = index_.find(tensor);
  if (found == index_.end())
    throw_input(fmt::format("the checkpoint has no tensor '{}'", tensor), directory_,
                "use the checkpoint's model; compare [model] in both configs");
  return found->second;
}

const std::vector<std::int64_t>& CheckpointReader::shape(const std::string& tensor) const {
  const auto [shard, piece] = places(tensor).front();
  return manifest_.shards[shard].pieces[piece].shape;
}

std::set<std::size_t> CheckpointReader::shards_of(const std::string& tensor, std::uint64_t offset,
                                                  std::uint64_t count) const {
  std::set<std::size_t> shards;
  for (const auto& [shard, piece] : places(tensor)) {
    const StoredPiece& stored = manifest_.shards[shard].pieces[piece];
    if (stored.offset < offset + count && offset < stored.offset + stored.count)
      shards.insert(shard);
  }
  return shards;
}

void CheckpointReader::read(const std::string& tensor, const std::string& part,
                            std::uint64_t offset, std::span<float> out) {
  read_range({tensor, part, offset, out}, beat_);
}

void CheckpointReader::read(std::span<const Range> ranges) {
  for_all(ranges.size(), beat_, [&](std::size_t i) { read_range(ranges[i], {}); });
}

void CheckpointReader::read_range(const Range& range, const Beat& beat) const {
  const auto& [tensor, part, first, all] = range;
  std::uint64_t offset = first;
  std::span<float> out = all;
  const auto& found = places(tensor);
  const std::uint64_t total = element_count(shape(tensor), directory_);
  if (offset > total || out.size() > total - offset)
    throw_input(fmt::format("requested elements [{}, {}) of '{}', but the checkpoint has {}",
                            offset, offset + out.size(), tensor, total),
                directory_, "use the checkpoint's model; compare [model] in both configs");
  const auto piece_at = [&](const auto& place) -> const StoredPiece& {
    return manifest_.shards[place.first].pieces[place.second];
  };
  // Find the first piece that ends after `offset`; pieces are contiguous (validate()).
  auto place = std::partition_point(found.begin(), found.end(), [&](const auto& p) {
    return piece_at(p).offset + piece_at(p).count <= offset;
  });
  for (; !out.empty(); ++place) {
    const StoredPiece& piece = piece_at(*place);
    const std::uint64_t begin = offset - piece.offset;
    const auto piece_out = out.first(std::min<std::uint64_t>(out.size(), piece.count - begin));
    read_piece(place->first, piece, part, begin, piece_out, beat);
    offset += piece_out.size();
    out = out.subspan(piece_out.size());
  }
}

void CheckpointReader::use_as_weights(const std::string& part) {
  for (const ShardRecord& shard : manifest_.shards)
    for (const StoredPiece& piece : shard.pieces)
      if (part_of(piece, part) != nullptr) weights_ = part;
  if (weights_ != part)
    throw_input(fmt::format("the checkpoint has no '{}' of the weights", part), directory_,
                "the checkpoint of a run with optimizer.ema, or no --average");
}

void CheckpointReader::read_piece(std::size_t shard, const StoredPiece& piece,
                                  const std::string& part, std::uint64_t begin,
                                  std::span<float> out, const Beat& beat) const {
  const StoredPart* stored = part == "weight" ? part_of(piece, weights_) : nullptr;
  if (stored == nullptr) stored = part_of(piece, part);
  if (stored == nullptr)
    throw_input(fmt::format("the checkpoint has no '{}' for '{}'", part, piece.tensor), directory_,
                "use the checkpoint's optimizer; compare [optimizer] in both configs");
  const std::string path = directory_ + "/" + manifest_.shards[shard].file;
  const File file = open_regular(path, place_);
  const auto wanted = std::as_writable_bytes(out);
  const std::uint64_t from = begin * sizeof(float), to = from + wanted.size();
  PartHash hash(stored->sha256);
  const auto use = [&](std::uint64_t at, std::span<const std::byte> chunk) {
    if (beat) beat();
    const std::uint64_t lo = std::max(at, from), hi = std::min(at + chunk.size(), to);
    if (lo < hi && &wanted[lo - from] != &chunk[lo - at])
      std::memcpy(&wanted[lo - from], &chunk[lo - at], hi - lo);
  };
  // A whole part is read directly into its destination.
  const bool whole = wanted.size() == piece.count * sizeof(float);
  hash_range(file, stored->at, piece.count * sizeof(float), hash, use,
             whole ? wanted : std::span<std::byte>());
  if (hash.text() != stored->sha256)
    throw_input(fmt::format("'{}' of '{}' is damaged: its {} does not match the manifest", part,
                            piece.tensor, is_sha256_hex(stored->sha256) ? "SHA-256" : "XXH3"),
                fmt::format("{}, bytes [{}, {})", path, stored->at,
                            stored->at + piece.count * sizeof(float)),
                recovery_advice(directory_));
}

}  // namespace concertina
