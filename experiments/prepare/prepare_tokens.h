// Encodes text into a token file on all ranks. Invariants: the bytes of the file do not depend on
// the number of ranks, the chunk size or the number of kills and restarts; a file with the final
// name is complete and durable.
#pragma once

#include <string>

#include "io/prepare/text_chunks.h"
#include "io/token_file.h"
#include "parallel/comm/communicator.h"

namespace concertina {

struct PreparedText {
  TokenFileInfo info;  // `sha256` only on rank 0
  std::uint64_t text_bytes = 0, chunks = 0;
  std::uint64_t kept = 0;  // chunks from an earlier attempt; only on rank 0
  double seconds = 0;
};

/// Writes `out`, which must not exist. Chunks of text are distributed round-robin; each rank stores
/// its tokens in the folder `out`.parts, which the next attempt of the same command reuses and
/// which is removed at the end. Chunks there that are damaged, or belong to another text, tokenizer
/// or options, are encoded again, with a warning. All ranks must share a file system. Input errors:
/// those of TextChunks::encode(), a file that another process is preparing, a text without tokens.
/// Failures: file errors, a text that changes meanwhile. Collective.
PreparedText prepare_tokens(Communicator& world, const Corpus& corpus, const Tokenizer& tokenizer,
                            const PrepareOptions& options, const std::string& out);

}  // namespace concertina
