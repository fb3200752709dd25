// Text into a token file, by all ranks.
// Invariants: the file is the same bytes for any number of ranks, any size of chunks and any number
// of kills and restarts; under its name it is whole and durable, or not there.
#pragma once

#include <string>

#include "io/prepare/text_chunks.h"
#include "io/token_file.h"
#include "parallel/comm/communicator.h"

namespace concertina {

struct PreparedText {
  TokenFileInfo info;  // `sha256` on rank 0 alone
  std::uint64_t text_bytes = 0, chunks = 0;
  std::uint64_t kept = 0;  // chunks that an earlier start had made; on rank 0 alone
  double seconds = 0;
};

/// Writes `out`, which must not be there. Chunks of text are dealt to the ranks in turn; what a
/// rank makes of one is kept in the folder `out`.parts, where the next start of the same command
/// finds it, and which is removed at the end. Chunks there that are damaged, or of another text,
/// tokenizer or options, are made anew, with a warning. All ranks see one file system.
/// Input errors: of TextChunks::encode(); another process prepares this file; a text without
/// tokens. Failures: of a file; the text was changed meanwhile. Collective.
PreparedText prepare_tokens(Communicator& world, const Corpus& corpus, const Tokenizer& tokenizer,
                            const PrepareOptions& options, const std::string& out);

}  // namespace concertina
