// Concertina's token file: text that `data prepare` has encoded once, so that runs read tokens
// directly. The format is in io/README.md. Invariant: a file that TokenFile accepts has exactly the
// size that its header implies.
#pragma once

#include <cstdint>
#include <functional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "io/file.h"
#include "io/sha256.h"

namespace concertina {

/// The header and the values derived from it.
struct TokenFileInfo {
  std::uint64_t vocabulary = 0, tokens = 0, documents = 0;
  std::string tokenizer;  // fingerprint() of the tokenizer: 64 hexadecimal digits
  std::string sha256;     // of the entire contents, in the same form

  static constexpr std::uint64_t kTokensAt = 128;
  static constexpr std::uint64_t kLargestVocabulary = std::uint64_t{1} << 31;
  /// Returns the number of bytes per token.
  static int width_of(std::uint64_t vocabulary) { return vocabulary <= 65536 ? 2 : 4; }
  int width() const { return width_of(vocabulary); }
  /// Offset of the bounds of the documents: documents + 1 numbers from 0 to `tokens`.
  std::uint64_t bounds_at() const {
    return (kTokensAt + tokens * static_cast<std::uint64_t>(width()) + 7) / 8 * 8;
  }
  std::uint64_t bytes() const { return bounds_at() + 8 * (documents + 1); }
  /// Number of blocks of [kTokensAt, bytes()) that are hashed separately.
  std::uint64_t blocks() const;
};

/// Whether a file starts like a token file, even with a damaged first line or a different version.
/// Such a file is not treated as any other format: TokenFile reports what is wrong.
bool is_token_file(const std::string& path);
/// Returns the tokens, each in [0, 256^width), as they are stored in the file.
std::string packed_tokens(std::span<const std::int32_t> tokens, int width);

/// A token file, read with pread(): truncation during use is an error, not SIGBUS.
class TokenFile {
 public:
  /// Throws Error{bad_input} naming the offset if the header or the length is wrong.
  explicit TokenFile(const std::string& path);

  const TokenFileInfo& info() const { return info_; }
  /// Reads tokens [begin, begin + tokens.size()). Throws if one is not in the vocabulary.
  void read(std::uint64_t begin, std::span<std::int32_t> tokens) const;
  /// Reads the token indices at which documents [first, first + bounds.size()) begin; the index
  /// for document info().documents is the number of tokens. Throws if they are not ascending.
  void bounds(std::uint64_t first, std::span<std::uint64_t> bounds) const;
  /// Verifies the hash, all tokens and all bounds on all cores. Throws Error{bad_input} naming the
  /// first fault. `progress` is called after each piece.
  void verify(const std::function<void()>& progress = {}) const;

 private:
  TokenFileInfo info_;
  File file_;
};

/// Writes a token file from one process or several at once. The header is written last; until then
/// the file is not recognized as a token file.
class TokenFileWriter {
 public:
  /// Ignores `info.sha256`. With `create`, the file is created or truncated and its space reserved;
  /// otherwise another process must have created it.
  TokenFileWriter(const std::string& path, TokenFileInfo info, bool create);

  /// `packed` is the result of packed_tokens() for the tokens from `first` on.
  void write_tokens(std::uint64_t first, std::string_view packed);
  /// Writes the indices of the first tokens of documents `first`, `first` + 1, ...
  void write_bounds(std::uint64_t first, std::span<const std::uint64_t> bounds);
  /// Waits until this process's writes are on stable storage.
  void sync() { file_.sync(); }
  /// Returns the hash of a block; call it after all processes have written.
  std::string block_sha256(std::uint64_t block) const;
  /// Writes the header; call it last, in one process. `blocks`: the block_sha256() of each block.
  void finish(const std::vector<std::string>& blocks);

 private:
  TokenFileInfo info_;
  File file_;
};

}  // namespace concertina
