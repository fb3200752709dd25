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

/// Precedes the data of each entry. All zero means that the slot is empty.
struct EntryHeader {
  Sha256Digest prefix{};
  std::uint64_t sample = 0, slot = 0;
  std::uint64_t data_hash = 0;  // XXH3 of the data
  std::uint32_t write = 0;      // differs between successive writes of a slot
  std::uint32_t own_hash = 0;   // low half of the XXH3 of all members above
  bool operator==(const EntryHeader&) const = default;
};
static_assert(sizeof(EntryHeader) == 64);

// Slots are aligned to a page and a cache line.
constexpr std::uint64_t kPage = 4096, kCacheLine = 64;

template <class Header>
std::span<std::byte> bytes_of(Header& header) {
  static_assert(std::has_unique_object_representations_v<Header>);
  return std::as_writable_bytes(std::span(&header, 1));
}

std::uint64_t xxh3(std::span<const std::byte> data) {
  return XXH3_64bits(data.data(), data.size());
}

/// Returns the header with `own_hash` set to the hash of the other members.
template <class Header>
Header sealed(Header header) {
  const auto above = bytes_of(header).first(sizeof header - sizeof header.own_hash);
  header.own_hash = static_cast<decltype(header.own_hash)>(xxh3(above));
  return header;
}

EntryHeader entry_header(const CacheKey& key, std::span<const std::byte> data) {
  // The clock is the same for all processes on the host; its low half wraps around after 4 s.
  const auto time = std::chrono::steady_clock::now().time_since_epoch().count();
  return sealed(EntryHeader{key.prefix, key.sample, key.slot, xxh3(data),
                            static_cast<std::uint32_t>(time), 0});
}

std::uint64_t slot_bytes(std::uint64_t entry_bytes) {
  return (sizeof(EntryHeader) + entry_bytes + kCacheLine - 1) / kCacheLine * kCacheLine;
}

/// Reports a full disk here, not in the middle of a step.
void reserve_slots(File& file, const CacheSlots& slots) {
  try {
    file.reserve(slots.file_bytes());
  } catch (const Error& error) {
    if (error.system_error() != ENOSPC) throw;
    std::error_code ignored;
    const auto space = std::filesystem::space(file.path(), ignored);
    throw_failure(fmt::format("not enough space for {:.1f} MiB: {:.1f} MiB is free",
                              static_cast<double>(slots.file_bytes()) / (1 << 20),
                              static_cast<double>(space.available) / (1 << 20)),
                  file.path(), "use a smaller budget, or free space there");
  }
}

}  // namespace

std::uint64_t CacheSlots::file_bytes() const {
  return kPage + count * slot_bytes(entry_bytes);
}

CacheSlots fit_slots(std::uint64_t first, std::uint64_t samples, std::uint64_t entry_bytes,
                     std::uint64_t budget) {
  // File systems allocate whole pages.
  const std::uint64_t usable = budget / kPage * kPage;
  const std::uint64_t fit = usable <= kPage ? 0 : (usable - kPage) / slot_bytes(entry_bytes);
  return {first, first < samples ? std::min(fit, samples - first) : 0, entry_bytes};
}

CacheTier::CacheTier(File file, const CacheSlots& slots) : file_(std::move(file)), slots_(slots) {
  // Samples are read in random order: read-ahead (a few MiB on many systems) would be wasted.
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
  // The PID may belong to a different process in another container.
  const auto require_same = [&](bool same) {
    if (!same)
      throw_input("cannot open a cache file created by another rank on this host", directory,
                  "run all ranks of a host in one container");
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
  CONCERTINA_CHECK(slots_.holds(slot), "slot {} not in [{}, +{})", slot, slots_.first,
                   slots_.count);
  return kPage + (slot - slots_.first) * slot_bytes(slots_.entry_bytes);
}

std::optional<CacheKey> CacheTier::held(std::uint64_t slot) const {
  EntryHeader header;
  file_.read_at(offset(slot), bytes_of(header));
  if (header == EntryHeader{} || header != sealed(header)) return {};
  return CacheKey{header.slot, header.sample, header.prefix};
}

CacheOutcome CacheTier::read(const CacheKey& key, std::span<std::byte> out) const {
  CONCERTINA_CHECK(out.size() == slots_.entry_bytes, "buffer of {} bytes for an entry of {}",
                   out.size(), slots_.entry_bytes);
  const std::uint64_t at = offset(key.slot);
  EntryHeader header, again;
  file_.read_at(at, bytes_of(header));
  if (header == EntryHeader{}) return CacheOutcome::miss;
  if (header == sealed(header)) {
    if (CacheKey{header.slot, header.sample, header.prefix} != key) return CacheOutcome::miss;
    file_.read_at(at + sizeof header, out);
    if (header.data_hash == xxh3(out)) return CacheOutcome::hit;
  }
  // A writer clears the header before it touches the data, and ends by writing a different one. If
  // the header is unchanged, there was no writer.
  file_.read_at(at, bytes_of(again));
  return again == header ? CacheOutcome::damaged : CacheOutcome::miss;
}

void CacheTier::write(const CacheKey& key, std::span<const std::byte> data) {
  CONCERTINA_CHECK(data.size() == slots_.entry_bytes, "buffer of {} bytes for an entry of {}",
                   data.size(), slots_.entry_bytes);
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
  // The kernel reads at most its read-ahead window per call (128 KiB by default).
  constexpr std::uint64_t kWindow = 128 << 10;
  const std::uint64_t begin = offset(slot), end = begin + slot_bytes(slots_.entry_bytes);
  for (std::uint64_t at = begin; at < end; at += kWindow)
    ::posix_fadvise(file_.descriptor(), static_cast<off_t>(at),
                    static_cast<off_t>(std::min(kWindow, end - at)), POSIX_FADV_WILLNEED);
}

}  // namespace concertina
