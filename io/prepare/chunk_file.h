// Files that store the tokens of individual chunks until all chunks exist. Invariant: a chunk
// returned by load_chunk() is complete and has the given key.
#pragma once

#include <string>

#include "io/prepare/text_chunks.h"

namespace concertina {

/// Returns "FOLDER/chunk-00000012".
std::string chunk_path(const std::string& folder, std::uint64_t chunk);
/// Replaces an existing file. `key` is TextChunks::key(). The write is not durable: damage caused
/// by a power failure is detected by the hash.
void save_chunk(const std::string& path, const std::string& key, const ChunkTokens& chunk);

/// Whether a chunk's file is missing, damaged, from another preparation, or complete.
enum class ChunkState : std::uint8_t { absent, damaged, other, whole };
struct FoundChunk {
  ChunkState state = ChunkState::absent;
  ChunkTokens chunk;  // if complete
};
/// `width` is the number of bytes per token. The state is `other` if the file has a different key.
FoundChunk load_chunk(const std::string& path, const std::string& key, int width);

}  // namespace concertina
