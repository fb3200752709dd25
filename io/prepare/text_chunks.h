// Splits a text into chunks that are tokenized separately. Invariant: the chunks are a pure
// function of the text, the tokenizer and the options. Their concatenated tokens are the documents'
// tokens, whatever the chunk size.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "io/corpus.h"
#include "io/labelled/labelled_rows.h"
#include "io/tokenizers/tokenizer.h"

namespace concertina {

/// A document is a file, a line, or the text between empty lines. Line breaks between documents
/// belong to the end of the previous document.
enum class DocumentRule : std::uint8_t { file, line, blank_line };
inline constexpr std::string_view kDocumentRules[] = {"file", "line", "blank-line"};

struct PrepareOptions {
  DocumentRule documents = DocumentRule::file;
  /// Tokens that replace the line breaks at the end of each document.
  std::vector<std::int32_t> end{};
  /// Rows of a table, each of which is a document; null if the corpus is text.
  const LabelledRows* rows = nullptr;
  std::uint64_t chunk_bytes = std::uint64_t{4} << 20;  // approximate size of the text
};

/// A piece of text: whole documents, or part of a file that is one document; or rows of a table.
struct TextChunk {
  std::vector<TextChunk> more{};  // small files that follow in the same chunk
  std::string text, path;
  std::uint64_t begin = 0;  // byte offset in the file
  bool begins_file = false, ends_file = false;
  std::uint64_t first_row = 0;
  std::vector<std::size_t> ends{};  // of the rows, in `text`
};

/// The tokens of a chunk.
struct ChunkTokens {
  std::string packed;                 // packed_tokens()
  std::uint64_t tokens = 0;           // in `packed`
  std::vector<std::uint64_t> starts;  // first token of each document that begins in it
};

/// Not thread-safe.
class TextChunks {
 public:
  /// Keeps references to all arguments, which must outlive this object.
  TextChunks(const Corpus& corpus, const Tokenizer& tokenizer, const PrepareOptions& options);

  std::uint64_t count() const { return count_; }
  /// Returns a chunk. Its text may be empty if the previous chunk reaches the file's end. Fast if
  /// `chunk` increases from call to call.
  TextChunk read(std::uint64_t chunk);
  /// Throws Error{bad_input} naming the file and position if the tokenizer rejects the text.
  ChunkTokens encode(const TextChunk& chunk) const;
  /// Returns the SHA-256, in hexadecimal, of everything that affects encode(chunk).
  std::string key(const TextChunk& chunk) const;

 private:
  struct Piece {  // a file
    std::string path;
    std::uint64_t begin = 0, end = 0;  // bytes in the corpus
    std::uint64_t first = 0;           // first chunk, possibly shared with previous files
  };
  /// Returns the first position at or after `from` where `piece` may be split.
  std::uint64_t cut(const Piece& piece, std::uint64_t from);
  TextChunk part_of(const Piece& piece, std::uint64_t chunk);
  std::string text(std::uint64_t begin, std::uint64_t end) const;
  TextChunk read_rows(std::uint64_t chunk) const;
  void encode(const TextChunk& chunk, ChunkTokens& made, std::vector<std::int32_t>& tokens) const;
  void encode_rows(const TextChunk& chunk, ChunkTokens& made,
                   std::vector<std::int32_t>& tokens) const;
  void encode_document(std::string_view text, bool ends, const TextChunk& chunk,
                       std::vector<std::int32_t>& tokens) const;

  const Corpus& corpus_;
  const Tokenizer& tokenizer_;
  const PrepareOptions& options_;
  std::vector<Piece> pieces_;
  std::vector<std::uint64_t> first_rows_;  // of each chunk of a table, then the end
  std::uint64_t count_ = 0;
  std::uint64_t asked_ = 0, found_ = 0;  // of the last cut()
};

/// Returns the first position in [from, text.size()] where a document may begin: after a line
/// break, or (blank_line) at a non-empty line after an empty one. Returns text.size() if there is
/// none, or if the text ends too early to decide.
std::size_t document_cut(std::string_view text, std::size_t from, DocumentRule rule);

}  // namespace concertina
