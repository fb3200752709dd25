// Our file of tokens: text that `data prepare` has encoded once, so that runs read it as it is.
// io/README.md specifies the bytes.
// Invariant: what read_info() accepts has exactly the bytes that its header says.
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

/// The header, and the figures that follow from it.
struct TokenFileInfo {
  std::uint64_t vocabulary = 0, tokens = 0, documents = 0;
  std::string tokenizer;  // its fingerprint(): 64 hexadecimal digits
  std::string sha256;     // of all that the file has, likewise

  static constexpr std::uint64_t kTokensAt = 128;
  static constexpr std::uint64_t kLargestVocabulary = std::uint64_t{1} << 31;
  /// Bytes of a token of a vocabulary.
  static int width_of(std::uint64_t vocabulary) { return vocabulary <= 65536 ? 2 : 4; }
  int width() const { return width_of(vocabulary); }
  /// Where the documents' bounds are: documents + 1 numbers, the first 0, the last `tokens`.
  std::uint64_t bounds_at() const {
    return (kTokensAt + tokens * static_cast<std::uint64_t>(width()) + 7) / 8 * 8;
  }
  std::uint64_t bytes() const { return bounds_at() + 8 * (documents + 1); }
  /// The pieces of [kTokensAt, bytes()) that are hashed each for itself.
  std::uint64_t blocks() const;
};

/// Whether a file begins as ours do, or nearly so: with a first line that is damaged, or of another
/// version. TokenFile then says what is wrong; it is no file of another format.
bool is_token_file(const std::string& path);
/// The tokens, each in [0, 256^width), as the file has them.
std::string packed_tokens(std::span<const std::int32_t> tokens, int width);

/// A token file, read by calls: a file that is cut short meanwhile is an error.
class TokenFile {
 public:
  /// Input errors, with the byte: no token file, a lying header, a file of another length.
  explicit TokenFile(const std::string& path);

  const TokenFileInfo& info() const { return info_; }
  /// Tokens [begin, begin + tokens.size()). Input error: one that is not in the vocabulary.
  void read(std::uint64_t begin, std::span<std::int32_t> tokens) const;
  /// The first token of documents [first, first + bounds.size()); document info().documents ends
  /// the text. Input error: bounds that do not ascend.
  void bounds(std::uint64_t first, std::span<std::uint64_t> bounds) const;
  /// Reads all on all cores: the hash, each token, each bound. Input error, with what is wrong.
  /// `progress` is called after each piece.
  void verify(const std::function<void()>& progress = {}) const;

 private:
  TokenFileInfo info_;
  File file_;
};

/// Writes a token file, by one process or by several at once; its header comes last, so that
/// until then the file is none.
class TokenFileWriter {
 public:
  /// `info.sha256` is not looked at. With `create` the file is made anew, with room for all of it;
  /// else it has been made by another process.
  TokenFileWriter(const std::string& path, TokenFileInfo info, bool create);

  /// `packed`: of packed_tokens(), from token `first` on.
  void write_tokens(std::uint64_t first, std::string_view packed);
  /// The first tokens of documents `first`, `first` + 1, ...
  void write_bounds(std::uint64_t first, std::span<const std::uint64_t> bounds);
  /// Waits until what this process has written is on the storage.
  void sync() { file_.sync(); }
  /// The hash of a block, once all processes have written.
  std::string block_sha256(std::uint64_t block) const;
  /// Writes the header. `blocks`: block_sha256() of each, in order. By one process, at the end.
  void finish(const std::vector<std::string>& blocks);

 private:
  TokenFileInfo info_;
  File file_;
};

}  // namespace concertina
