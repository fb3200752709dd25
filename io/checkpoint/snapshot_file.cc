#include "io/checkpoint/snapshot_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "io/checkpoint/part_hash.h"
#include "io/checkpoint/run_directory.h"
#include "io/file.h"
#include "io/strict_json.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMemoryFolder = "/dev/shm";
constexpr std::string_view kMemoryFiles = "/dev/shm/concertina-";
constexpr std::size_t kIdDigits = 32;  // digits of the run.id that follows kMemoryFiles
constexpr const char* kUnfinished = ".partial";
constexpr std::uint64_t kSnapshotAlign = 64;  // bytes
/// Space reserved for the description, which grows as policies record data: recreating a file takes
/// longer than the copy.
constexpr std::uint64_t kTextRoom = 64 << 10;
constexpr std::uint64_t kMostDescription = 64 << 20;

/// The end of a file, following the text of the description.
struct SnapshotTail {
  char magic[8] = {'c', 'o', 'n', 'c', 's', 'n', 'p', '2'};
  std::uint64_t text_bytes = 0;
  Sha256Digest mac{};  // of the text, which contains the hashes of all parts
};
constexpr SnapshotTail kNoTail;

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kSnapshotAlign - 1) / kSnapshotAlign * kSnapshotAlign;
}

/// Assigns consecutive offsets to the parts, without hashing them.
ShardRecord places_of(std::span<const TensorPiece> pieces) {
  ShardRecord record{
      .file = shard_name(0), .bytes = 0, .skeleton_sha256 = sha256_hex(""), .pieces = {}};
  for (const TensorPiece& piece : pieces) {
    StoredPiece stored{piece.name, piece.shape, piece.offset, piece.count, {}};
    for (const StatePart& part : piece.parts) {
      stored.parts.push_back({part.name, record.bytes, fast_part_hash({})});
      record.bytes += aligned(piece.count * sizeof(float));
    }
    record.pieces.push_back(std::move(stored));
  }
  return record;
}

std::string description(const SnapshotRun& run, const SnapshotPart& part) {
  nlohmann::json json = to_json(part);
  json["directory"] = run.directory;
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

void write_tail(std::byte* end, const std::string& key, const std::string& text) {
  const SnapshotTail tail{.text_bytes = text.size(), .mac = hmac_sha256(key, text)};
  std::memcpy(end - sizeof tail - text.size(), text.data(), text.size());
  std::memcpy(end - sizeof tail, &tail, sizeof tail);
}

/// Returns a snapshot's description. Throws Error{bad_input} if its key is not `key` (null: any).
nlohmann::json read_description(const File& file, const std::string* key) {
  SnapshotTail tail;
  const std::uint64_t size = file.size();
  const auto require = [&](bool sound, const char* what) {
    if (!sound) throw_input(what, file.path(), "remove it");
  };
  require(size >= sizeof tail, "too short for a snapshot");
  file.read_at(size - sizeof tail, std::as_writable_bytes(std::span(&tail, 1)));
  require(std::ranges::equal(tail.magic, kNoTail.magic), "not a snapshot of this version");
  require(tail.text_bytes <= std::min(size - sizeof tail, kMostDescription), "damaged");
  std::string text(tail.text_bytes, '\0');
  file.read_at(size - sizeof tail - text.size(), std::as_writable_bytes(std::span(text)));
  require(key == nullptr || (!key->empty() && tail.mac == hmac_sha256(*key, text)),
          "damaged, or not made with the key of this run");
  nlohmann::json json = parse_json(text);
  require(json.is_object() && json["shard"].is_object() && json["shard"]["bytes"] == size,
          "truncated or damaged");
  return json;
}

/// Reads the part that a process with the run's key has written to `path`, if any.
std::optional<SnapshotPart> read_part(const std::string& path, const std::string& key, bool warn) {
  std::string why;
  try {
    const File file = open_regular(path, FilePlace::shared);
    SnapshotPart part = parse_snapshot_part(read_description(file, &key));
    part.file = fs::path(path).filename().string();
    return part;
  } catch (const Error& error) {
    if (error.system_error() != ENOENT) why = error.message();
  } catch (const nlohmann::json::exception& error) {
    why = error.what();
  }
  if (warn && !why.empty()) warn_once(path, "skipped: " + why);
  return std::nullopt;
}

/// Combines the parts of all ranks for one step of one launch into a commit, if none is missing.
/// Several hosts may have the same part.
std::optional<OpenCommit> commit_of(std::vector<SnapshotPart> parts) {
  const auto rank_of = [](const SnapshotPart& part) { return part.of.rank; };
  std::ranges::stable_sort(parts, {}, rank_of);
  parts.erase(std::ranges::unique(parts, {}, rank_of).begin(), parts.end());
  const int world = parts.front().of.world;
  if (std::cmp_not_equal(parts.size(), world)) return std::nullopt;
  Manifest manifest{parts[0].of.step, parts[0].metadata, {}, {}};
  for (std::size_t rank = 0; rank < parts.size(); ++rank) {
    if (std::cmp_not_equal(parts[rank].of.rank, rank)) return std::nullopt;
    manifest.shards.push_back(parts[rank].shard);
    manifest.shards.back().file = shard_name(rank);
  }
  try {
    validate(manifest.shards, kMemoryFolder);
  } catch (const Error&) {
    return std::nullopt;
  }
  for (std::size_t rank = 0; rank < parts.size(); ++rank)
    manifest.shards[rank].file = parts[rank].file;
  return OpenCommit{kMemoryFolder, std::move(manifest), FilePlace::shared};
}

/// Returns the files whose names begin with `prefix`, including incomplete ones.
std::vector<std::string> files_of(const std::string& prefix) {
  std::vector<std::string> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(kMemoryFolder, error))
    if (entry.path().string().starts_with(prefix)) files.push_back(entry.path());
  return files;
}

}  // namespace

std::string snapshot_prefix(const std::string& directory) {
  const std::string id = read_run_id(directory);
  return id.empty() ? id : fmt::format("{}{}", kMemoryFiles, id);
}

SnapshotRun snapshot_run(const std::string& directory) {
  return {snapshot_prefix(directory), read_run_key(directory),
          fs::absolute(directory).lexically_normal().string()};
}

nlohmann::json to_json(const SnapshotPart& part) {
  return {{"launch", part.of.launch}, {"rank", part.of.rank},      {"world", part.of.world},
          {"step", part.of.step},     {"metadata", part.metadata}, {"shard", to_json(part.shard)},
          {"file", part.file}};
}

SnapshotPart parse_snapshot_part(const nlohmann::json& json) {
  return {{json.at("launch"), json.at("rank"), json.at("world"), json.at("step")},
          json.at("metadata"),
          parse_shard_record(json.at("shard"), "a snapshot in memory"),
          json.value("file", std::string())};
}

std::string snapshot_path(const std::string& prefix, int rank, std::size_t generation) {
  return fmt::format("{}.{}.{}", prefix, rank, generation);
}

void SnapshotSlot::release() {
  if (data_ != nullptr) ::munmap(data_, bytes_);
  data_ = nullptr;
  bytes_ = 0;
}

void SnapshotSlot::publish() const {
  if (::rename((path_ + kUnfinished).c_str(), path_.c_str()) != 0)
    warn_once(path_, fmt::format("cannot publish this snapshot: {}", std::strerror(errno)));
}

void SnapshotSlot::open(std::uint64_t bytes) {
  const std::string partial = path_ + kUnfinished;
  if (bytes_ == bytes && ::rename(path_.c_str(), partial.c_str()) == 0) return;
  release();
  ::unlink(path_.c_str());
  ::unlink(partial.c_str());
  const File file(partial, File::Mode::create, S_IRUSR | S_IWUSR);
  const int descriptor = file.descriptor();
  if (const int error = ::posix_fallocate(descriptor, 0, static_cast<off_t>(bytes)); error != 0) {
    errno = error;
    ::unlink(partial.c_str());
    throw_io("fallocate", partial);
  }
  void* const data = ::mmap(nullptr, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, descriptor, 0);
  if (data == MAP_FAILED) {
    ::unlink(partial.c_str());
    throw_io("mmap", partial);
  }
  data_ = static_cast<std::byte*>(data);
  bytes_ = bytes;
}

SnapshotFile::SnapshotFile(SnapshotRun run, int rank)
    : run_(std::move(run)),
      slots_{SnapshotSlot(snapshot_path(run_.prefix, rank, 0)),
             SnapshotSlot(snapshot_path(run_.prefix, rank, 1))} {
  // A launch may resume from existing files, so the older one is overwritten first.
  const std::optional<SnapshotPart> first = read_part(slots_[0].path(), run_.key, /*warn=*/false),
                                    second = read_part(slots_[1].path(), run_.key, /*warn=*/false);
  if (first && (!second || second->of.step < first->of.step)) next_ = 1;
}

double SnapshotFile::copy(const SnapshotOf& of, const nlohmann::json& metadata,
                          std::span<const TensorPiece> pieces) {
  double start = now();
  part_ = {of, metadata, places_of(pieces), {}};
  // Hashes already have their final length; the byte count may become a few digits longer.
  const std::uint64_t text_bytes = description(run_, part_).size() + kSnapshotAlign;
  const std::uint64_t needed = part_.shard.bytes + text_bytes + sizeof(SnapshotTail);
  SnapshotSlot& slot = slots_[next_];
  const std::uint64_t room = slot.bytes().size();
  const bool reallocated = room < needed || room > 2 * (needed + kTextRoom);
  slot.open(reallocated ? aligned(needed + kTextRoom) : room);
  part_.shard.bytes = slot.bytes().size();
  if (reallocated) start = now();  // the first copy is not representative
  next_ = 1 - next_;
  for (std::size_t p = 0; p < pieces.size(); ++p)
    for (std::size_t s = 0; s < pieces[p].parts.size(); ++s)
      std::memcpy(&slot.bytes()[part_.shard.pieces[p].parts[s].at], pieces[p].parts[s].data,
                  pieces[p].count * sizeof(float));
  return now() - start;
}

double SnapshotFile::seal() {
  const double start = now();
  const SnapshotSlot& slot = slots_[generation()];
  for (StoredPiece& piece : part_.shard.pieces)
    for (StoredPart& part : piece.parts)
      part.sha256 = fast_part_hash(slot.bytes().subspan(part.at, piece.count * sizeof(float)));
  write_tail(slot.bytes().data() + slot.bytes().size(), run_.key, description(run_, part_));
  slot.publish();
  return now() - start;
}

std::vector<SnapshotPart> snapshot_parts(const SnapshotRun& run) {
  std::vector<SnapshotPart> parts;
  if (run.prefix.empty()) return parts;
  for (const std::string& file : files_of(run.prefix + "."))
    if (!file.ends_with(kUnfinished))
      if (std::optional<SnapshotPart> part = read_part(file, run.key, /*warn=*/true))
        parts.push_back(std::move(*part));
  return parts;
}

std::optional<WholeSnapshot> newest_whole(std::vector<SnapshotPart> parts) {
  std::map<std::pair<std::int64_t, std::uint64_t>, std::vector<SnapshotPart>>
      sets;  // by step and launch
  for (SnapshotPart& part : parts) sets[{part.of.step, part.of.launch}].push_back(std::move(part));
  for (auto set = sets.rbegin(); set != sets.rend(); ++set)
    if (std::optional<OpenCommit> commit = commit_of(std::move(set->second)))
      return WholeSnapshot{set->first.second, std::move(*commit)};
  return std::nullopt;
}

std::int64_t newest_snapshot_part(const SnapshotRun& run) {
  std::int64_t newest = 0;
  for (const SnapshotPart& part : snapshot_parts(run)) newest = std::max(newest, part.of.step);
  return newest;
}

void remove_snapshots(const std::string& prefix) {
  if (prefix.empty()) return;
  std::error_code ignored;
  for (const std::string& file : files_of(prefix + ".")) fs::remove(file, ignored);
}

std::map<std::string, SnapshotSet> own_snapshot_sets() {
  std::map<std::string, SnapshotSet> sets;
  for (const std::string& path : files_of(std::string(kMemoryFiles))) try {
      const std::string prefix = path.substr(0, path.find('.'));
      if (prefix.size() != kMemoryFiles.size() + kIdDigits) continue;
      const File file = open_regular(path, FilePlace::shared);
      sets[prefix].bytes += file.size();
      sets[prefix].directory = read_description(file, nullptr).at("directory").get<std::string>();
    } catch (const Error&) {  // belongs to another user, or has no description
    } catch (const nlohmann::json::exception&) {
    }
  return sets;
}

}  // namespace concertina
