// The tokens of a chunk, kept in a file of their own until all chunks are there.
// Invariant: a chunk that load_chunk() returns is whole, and is that of the key.
#pragma once

#include <string>

#include "io/prepare/text_chunks.h"

namespace concertina {

/// "FOLDER/chunk-00000012"
std::string chunk_path(const std::string& folder, std::uint64_t chunk);
/// Replaces what is there. `key`: of TextChunks::key(). Not durable: what a machine that loses
/// power leaves is seen by its hash.
void save_chunk(const std::string& path, const std::string& key, const ChunkTokens& chunk);

/// The state of a chunk's file: not there, broken, of another preparation, or as it should be.
enum class ChunkState : std::uint8_t { absent, damaged, other, whole };
struct FoundChunk {
  ChunkState state = ChunkState::absent;
  ChunkTokens chunk;  // of a whole one
};
/// `width`: bytes per token. `other`: the file has another key.
FoundChunk load_chunk(const std::string& path, const std::string& key, int width);

}  // namespace concertina
