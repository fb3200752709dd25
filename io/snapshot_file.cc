#include "io/snapshot_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/clock.h"
#include "core/error.h"
#include "io/file.h"
#include "io/part_hash.h"

namespace concertina {
namespace {

namespace fs = std::filesystem;

constexpr const char* kMemoryFolder = "/dev/shm";
constexpr const char* kUnfinished = ".partial";
constexpr std::uint64_t kSnapshotAlign = 64;  // bytes
/// The text grows with what policies have seen: a file has room for that, as making one anew takes
/// longer than the copy.
constexpr std::uint64_t kTextRoom = 64 << 10;

/// The end of a file: the text before it is its description.
struct SnapshotTail {
  char magic[8] = {'c', 'o', 'n', 'c', 's', 'n', 'a', 'p'};
  std::uint64_t text_bytes = 0;
  char hash[40] = {};  // of the text
};
constexpr SnapshotTail kNoTail;

std::uint64_t aligned(std::uint64_t bytes) {
  return (bytes + kSnapshotAlign - 1) / kSnapshotAlign * kSnapshotAlign;
}

/// Where the parts go, one after the other, with hashes that are not known yet.
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

std::string description(const SnapshotOf& of, const nlohmann::json& metadata,
                        const ShardRecord& record) {
  return nlohmann::json{{"launch", of.launch}, {"rank", of.rank},      {"world", of.world},
                        {"step", of.step},     {"metadata", metadata}, {"shard", to_json(record)}}
      .dump();
}

void write_tail(std::byte* end, const std::string& text) {
  SnapshotTail tail;
  tail.text_bytes = text.size();
  const std::string hash = fast_part_hash(std::as_bytes(std::span(text)));
  std::memcpy(tail.hash, hash.data(), std::min(hash.size(), sizeof tail.hash));
  std::memcpy(end - sizeof tail - text.size(), text.data(), text.size());
  std::memcpy(end - sizeof tail, &tail, sizeof tail);
}

/// Nothing of a file that is no part, or damaged where it describes itself.
std::optional<SnapshotPart> read_part(const std::string& path) {
  try {
    const File file(path, File::Mode::read);
    SnapshotTail tail;
    const std::uint64_t size = file.size();
    if (size < sizeof tail) return std::nullopt;
    file.read_at(size - sizeof tail, std::as_writable_bytes(std::span(&tail, 1)));
    if (std::memcmp(tail.magic, kNoTail.magic, sizeof tail.magic) != 0 ||
        tail.text_bytes > size - sizeof tail)
      return std::nullopt;
    std::string text(tail.text_bytes, '\0');
    file.read_at(size - sizeof tail - text.size(), std::as_writable_bytes(std::span(text)));
    const std::string hash = fast_part_hash(std::as_bytes(std::span(text)));
    if (std::string_view(tail.hash, std::min(hash.size(), sizeof tail.hash)) != hash)
      return std::nullopt;
    const nlohmann::json json = nlohmann::json::parse(text);
    SnapshotPart part = parse_snapshot_part(json);
    part.file = fs::path(path).filename().string();
    return part;
  } catch (const Error&) {
    return std::nullopt;
  } catch (const nlohmann::json::exception&) {
    return std::nullopt;
  }
}

/// The parts of all ranks of one step of one launch as a commit; none if one is missing. Several
/// hosts may have the same one.
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
  return OpenCommit{kMemoryFolder, std::move(manifest)};
}

/// The files of a run, also those that are not whole.
std::vector<std::string> files_of(const std::string& prefix) {
  std::vector<std::string> files;
  std::error_code error;
  for (const fs::directory_entry& entry : fs::directory_iterator(kMemoryFolder, error))
    if (entry.path().string().starts_with(prefix + ".")) files.push_back(entry.path());
  return files;
}

}  // namespace

std::string snapshot_prefix(const std::string& directory) {
  const std::string path = directory + "/run.id";
  constexpr std::size_t kDigits = 32;
  if (std::error_code error; !fs::is_regular_file(path, error)) return {};
  const std::string text = read_file(path, 4096);
  if (text.size() < kDigits || text.find_first_not_of("0123456789abcdef") < kDigits) return {};
  return fmt::format("{}/concertina-{}", kMemoryFolder, text.substr(0, kDigits));
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
  ::rename((path_ + kUnfinished).c_str(), path_.c_str());
}

void SnapshotSlot::open(std::uint64_t bytes) {
  const std::string partial = path_ + kUnfinished;
  if (bytes_ == bytes && ::rename(path_.c_str(), partial.c_str()) == 0) return;
  release();
  ::unlink(path_.c_str());
  ::unlink(partial.c_str());
  const int descriptor = ::open(partial.c_str(), O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
  if (descriptor < 0) throw_io("open", partial);
  const File file(descriptor, partial);
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

SnapshotFile::SnapshotFile(const std::string& prefix, int rank)
    : slots_{SnapshotSlot(snapshot_path(prefix, rank, 0)),
             SnapshotSlot(snapshot_path(prefix, rank, 1))} {
  // What is there may be gone on from: the older one is written over first.
  const std::optional<SnapshotPart> first = read_part(slots_[0].path()),
                                    second = read_part(slots_[1].path());
  if (first && (!second || second->of.step < first->of.step)) next_ = 1;
}

void SnapshotFile::write(const SnapshotOf& of, const nlohmann::json& metadata,
                         std::span<const TensorPiece> pieces) {
  finish();
  double start = now();
  ShardRecord record = places_of(pieces);
  // Hashes are as long as they will be; the number of bytes may become some digits longer.
  const std::uint64_t text_bytes = description(of, metadata, record).size() + kSnapshotAlign;
  const std::uint64_t needed = record.bytes + text_bytes + sizeof(SnapshotTail);
  SnapshotSlot& slot = slots_[next_];
  const std::uint64_t room = slot.bytes().size();
  const bool anew = room < needed || room > 2 * (needed + kTextRoom);
  slot.open(anew ? aligned(needed + kTextRoom) : room);
  record.bytes = slot.bytes().size();
  if (anew) start = now();  // that of a first time says nothing of the next
  next_ = 1 - next_;
  whole_ = false;
  // The thread hashes what is there already.
  const auto copied = std::make_shared<std::atomic<std::size_t>>(0);
  thread_ = std::thread([this, &slot, of, metadata, record, copied]() mutable {
    std::size_t at = 0;
    double hashing = 0;
    for (StoredPiece& piece : record.pieces)
      for (StoredPart& part : piece.parts) {
        while (copied->load() <= at) copied->wait(at);
        const double begin = now();
        part.sha256 = fast_part_hash(slot.bytes().subspan(part.at, piece.count * sizeof(float)));
        hashing += now() - begin;
        ++at;
      }
    write_tail(slot.bytes().data() + slot.bytes().size(), description(of, metadata, record));
    slot.publish();
    hash_seconds_ = hashing;
    whole_ = true;
  });
  for (std::size_t p = 0; p < pieces.size(); ++p)
    for (std::size_t s = 0; s < pieces[p].parts.size(); ++s) {
      std::memcpy(&slot.bytes()[record.pieces[p].parts[s].at], pieces[p].parts[s].data,
                  pieces[p].count * sizeof(float));
      ++*copied;
      copied->notify_one();
    }
  copy_seconds_ = now() - start;
}

void SnapshotFile::finish() {
  if (thread_.joinable()) thread_.join();
}

std::vector<SnapshotPart> snapshot_parts(const std::string& prefix) {
  std::vector<SnapshotPart> parts;
  if (prefix.empty()) return parts;
  for (const std::string& file : files_of(prefix))
    if (std::optional<SnapshotPart> part =
            file.ends_with(kUnfinished) ? std::nullopt : read_part(file))
      parts.push_back(std::move(*part));
  return parts;
}

std::optional<OpenCommit> newest_whole(std::vector<SnapshotPart> parts) {
  std::map<std::pair<std::int64_t, std::uint64_t>, std::vector<SnapshotPart>>
      sets;  // by step and launch
  for (SnapshotPart& part : parts) sets[{part.of.step, part.of.launch}].push_back(std::move(part));
  for (auto set = sets.rbegin(); set != sets.rend(); ++set)
    if (std::optional<OpenCommit> commit = commit_of(std::move(set->second))) return commit;
  return std::nullopt;
}

std::int64_t newest_snapshot_part(const std::string& prefix) {
  std::int64_t newest = 0;
  for (const SnapshotPart& part : snapshot_parts(prefix)) newest = std::max(newest, part.of.step);
  return newest;
}

void remove_snapshots(const std::string& prefix) {
  if (prefix.empty()) return;
  std::error_code ignored;
  for (const std::string& file : files_of(prefix)) fs::remove(file, ignored);
}

}  // namespace concertina
