// Creates token files for tests.
#pragma once

#include <string>
#include <vector>

#include "io/token_file.h"

namespace concertina {

/// Writes a whole token file in one process, block by block like `data prepare`. `bounds`: the
/// starts of the documents, and the end.
inline void write_token_file(const std::string& path, std::uint64_t vocabulary,
                             const std::string& tokenizer, const std::vector<std::int32_t>& tokens,
                             const std::vector<std::uint64_t>& bounds) {
  TokenFileInfo info;
  info.vocabulary = vocabulary;
  info.tokenizer = tokenizer;
  info.tokens = tokens.size();
  info.documents = bounds.size() - 1;
  TokenFileWriter writer(path, info, true);
  writer.write_tokens(0, packed_tokens(tokens, info.width()));
  writer.write_bounds(0, bounds);
  std::vector<std::string> blocks;
  for (std::uint64_t b = 0; b < info.blocks(); ++b) blocks.push_back(writer.block_sha256(b));
  writer.finish(blocks);
}

}  // namespace concertina
