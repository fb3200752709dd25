#include "io/cache_tier.h"

#include <fcntl.h>
#include <unistd.h>
#include <xxhash.h>

#include <algorithm>
#include <cerrno>
#include <chrono>
#include <filesystem>

#include "core/error.h"

namespace concertina {
namespace {

/// Before the data of each entry. All zero: the slot is empty.
struct EntryHeader {
  Sha256Digest prefix{};
  std::uint64_t sample = 0, slot = 0;
  std::uint64_t data_hash = 0;  // XXH3 of the data
  std::uint32_t write = 0;      // no two writes of a slot have the same soon after one another
  std::uint32_t own_hash = 0;   // the low half of XXH3 of all above
  bool operator==(const EntryHeader&) const = default;
};
static_assert(sizeof(EntryHeader) == 64);

// Slots begin on a page and on a cache line.
constexpr std::uint64_t kPage = 4096, kCacheLine = 64;

template <class Header>
std::span<std::byte> bytes_of(Header& header) {
  static_assert(std::has_unique_object_representations_v<Header>);
  return std::as_writable_bytes(std::span(&header, 1));
}

std::uint64_t xxh3(std::span<const std::byte> data) {
  return XXH3_64bits(data.data(), data.size());
}

/// The header with the hash of all its members but the last, which is that hash.
template <class Header>
Header sealed(Header header) {
  const auto above = bytes_of(header).first(sizeof header - sizeof header.own_hash);
  header.own_hash = static_cast<decltype(header.own_hash)>(xxh3(above));
  return header;
}

EntryHeader entry_header(const CacheKey& key, std::span<const std::byte> data) {
  // The clock is the same for all processes of the host; its low half comes again after 4 s.
  const auto time = std::chrono::steady_clock::now().time_since_epoch().count();
  return sealed(EntryHeader{key.prefix, key.sample, key.slot, xxh3(data),
                            static_cast<std::uint32_t>(time), 0});
}

std::uint64_t slot_bytes(std::uint64_t entry_bytes) {
  return (sizeof(EntryHeader) + entry_bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

/// A full disk is an error here, not in the middle of a step.
void reserve_slots(File& file, const CacheSlots& slots) {
  try {
    file.reserve(slots.file_bytes());
  } catch (const Error& error) {
    if (error.system_error() != ENOSPC) throw;
    std::error_code ignored;
    const auto space = std::filesystem::space(file.path(), ignored);
    throw_failure(fmt::format("no room for {:.1f} MiB: {:.1f} MiB are free",
                              static_cast<double>(slots.file_bytes()) / (1 << 20),
                              static_cast<double>(space.available) / (1 << 20)),
                  file.path(), "a smaller budget, or free space there");
  }
}

}  // namespace

std::uint64_t CacheSlots::file_bytes() const {
  return kPage + count * slot_bytes(entry_bytes);
}

CacheSlots fit_slots(std::uint64_t first, std::uint64_t samples, std::uint64_t entry_bytes,
                     std::uint64_t budget) {
  // A file system gives whole pages.
  const std::uint64_t usable = budget / kPage * kPage;
  const std::uint64_t fit = usable <= kPage ? 0 : (usable - kPage) / slot_bytes(entry_bytes);
  return {first, first < samples ? std::min(fit, samples - first) : 0, entry_bytes};
}

CacheTier::CacheTier(File file, const CacheSlots& slots) : file_(std::move(file)), slots_(slots) {
  // Samples come in random order: reading ahead, some MiB on many systems, would be for others.
  ::posix_fadvise(file_.descriptor(), 0, 0, POSIX_FADV_RANDOM);
}

CacheTier CacheTier::create(const std::string& directory, const CacheSlots& slots) {
  CacheTier tier(unnamed_file(directory), slots);
  reserve_slots(tier.file_, slots);
  return tier;
}

nlohmann::json CacheTier::shared() const {
  const auto [device, inode] = file_.identity();
  return {{"file", fmt::format("/proc/{}/fd/{}", ::getpid(), file_.descriptor())},
          {"device", device},
          {"inode", inode},
          {"directory", file_.path()},
          {"slots", {slots_.first, slots_.count, slots_.entry_bytes}}};
}

CacheTier CacheTier::open(const nlohmann::json& shared) {
  const std::string file = shared["file"], directory = shared["directory"];
  // Another container may have another process of that number.
  const auto require_same = [&](bool same) {
    if (!same)
      throw_input("another rank of this host has a file that this one cannot see", directory,
                  "the ranks of a host in one container");
  };
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK);
  require_same(descriptor >= 0);
  File opened(descriptor, directory);
  require_same(opened.identity() == std::pair{shared["device"].get<std::uint64_t>(),
                                              shared["inode"].get<std::uint64_t>()});
  const nlohmann::json& slots = shared["slots"];
  return {std::move(opened), {slots[0], slots[1], slots[2]}};
}

std::uint64_t CacheTier::offset(std::uint64_t slot) const {
  CONCERTINA_CHECK(slots_.holds(slot), "slot {} of [{}, +{})", slot, slots_.first, slots_.count);
  return kPage + (slot - slots_.first) * slot_bytes(slots_.entry_bytes);
}

std::optional<CacheKey> CacheTier::held(std::uint64_t slot) const {
  EntryHeader header;
  file_.read_at(offset(slot), bytes_of(header));
  if (header == EntryHeader{} || header != sealed(header)) return {};
  return CacheKey{header.slot, header.sample, header.prefix};
}

CacheOutcome CacheTier::read(const CacheKey& key, std::span<std::byte> out) const {
  CONCERTINA_CHECK(out.size() == slots_.entry_bytes, "{} bytes for an entry of {}", out.size(),
                   slots_.entry_bytes);
  const std::uint64_t at = offset(key.slot);
  EntryHeader header, again;
  file_.read_at(at, bytes_of(header));
  if (header == EntryHeader{}) return CacheOutcome::miss;
  if (header == sealed(header)) {
    if (CacheKey{header.slot, header.sample, header.prefix} != key) return CacheOutcome::miss;
    file_.read_at(at + sizeof header, out);
    if (header.data_hash == xxh3(out)) return CacheOutcome::hit;
  }
  // A writer empties the header before it touches the data, and ends with another one: if it is as
  // it was, none was there.
  file_.read_at(at, bytes_of(again));
  return again == header ? CacheOutcome::damaged : CacheOutcome::miss;
}

void CacheTier::write(const CacheKey& key, std::span<const std::byte> data) {
  CONCERTINA_CHECK(data.size() == slots_.entry_bytes, "{} bytes for an entry of {}", data.size(),
                   slots_.entry_bytes);
  EntryHeader header = entry_header(key, data);
  clear(key.slot);
  const std::uint64_t at = offset(key.slot);
  file_.write_at(at + sizeof header, data);
  file_.write_at(at, bytes_of(header));
}

void CacheTier::clear(std::uint64_t slot) {
  EntryHeader none;
  file_.write_at(offset(slot), bytes_of(none));
}

void CacheTier::prefetch(std::uint64_t slot) const {
  // The kernel reads no more than its read-ahead window per call, 128 KiB unless it was changed.
  constexpr std::uint64_t kWindow = 128 << 10;
  const std::uint64_t begin = offset(slot), end = begin + slot_bytes(slots_.entry_bytes);
  for (std::uint64_t at = begin; at < end; at += kWindow)
    ::posix_fadvise(file_.descriptor(), static_cast<off_t>(at),
                    static_cast<off_t>(std::min(kWindow, end - at)), POSIX_FADV_WILLNEED);
}

}  // namespace concertina
