#include "io/prepare/chunk_file.h"

#include <fmt/format.h>

#include <cstring>
#include <limits>

#include "core/error.h"
#include "io/file.h"
#include "io/sha256.h"

namespace concertina {
namespace {

constexpr std::size_t kDigits = 64, kCounts = 16, kFixed = 2 * kDigits + kCounts;

}  // namespace

std::string chunk_path(const std::string& folder, std::uint64_t chunk) {
  return fmt::format("{}/chunk-{:08}", folder, chunk);
}

/// Layout: SHA-256 of the rest, key, numbers of tokens and of starts, tokens, starts.
void save_chunk(const std::string& path, const std::string& key, const ChunkTokens& chunk) {
  std::string bytes = key;
  const std::uint64_t counts[] = {chunk.tokens, chunk.starts.size()};
  bytes.append(reinterpret_cast<const char*>(counts), sizeof counts);
  bytes += chunk.packed;
  bytes.append(reinterpret_cast<const char*>(chunk.starts.data()), 8 * chunk.starts.size());
  File file(path, File::Mode::open_or_create);
  file.truncate(0);
  file.write(sha256_hex(bytes));
  file.write(bytes);
  file.close();
}

FoundChunk load_chunk(const std::string& path, const std::string& key, int width) {
  FoundChunk found;
  if (!exists_at(path)) return found;
  const std::string bytes = read_file(path, std::numeric_limits<std::uint64_t>::max());
  found.state = ChunkState::damaged;
  if (bytes.size() < kFixed) return found;
  const std::string_view all(bytes), rest = all.substr(kDigits);
  if (sha256_hex(rest) != all.substr(0, kDigits)) return found;
  found.state = ChunkState::other;
  if (rest.substr(0, kDigits) != key) return found;
  std::uint64_t counts[2];
  std::memcpy(counts, rest.data() + kDigits, sizeof counts);
  const std::size_t packed = counts[0] * static_cast<std::size_t>(width);
  CONCERTINA_CHECK(bytes.size() == kFixed + packed + 8 * counts[1], "{} has {} bytes", path,
                   bytes.size());
  found.state = ChunkState::whole;
  found.chunk.tokens = counts[0];
  found.chunk.packed = rest.substr(kDigits + kCounts, packed);
  found.chunk.starts.resize(counts[1]);
  std::memcpy(found.chunk.starts.data(), bytes.data() + kFixed + packed, 8 * counts[1]);
  return found;
}

}  // namespace concertina
