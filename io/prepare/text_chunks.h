// A text as pieces of work, each of which becomes tokens alone.
// Invariant: the pieces are a pure function of the text, the tokenizer and the options; the tokens
// of all pieces, one after the other, are those of the documents, however long a piece is.
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

/// A document is a file, a line, or the text between empty lines. Line breaks between
/// documents are the end of the document before them.
enum class DocumentRule : std::uint8_t { file, line, blank_line };
inline constexpr std::string_view kDocumentRules[] = {"file", "line", "blank-line"};

struct PrepareOptions {
  DocumentRule documents = DocumentRule::file;
  /// After each document, in place of the line breaks that end it.
  std::vector<std::int32_t> end{};
  /// The rows of a table, each a document. Null: the corpus is text.
  const LabelledRows* rows = nullptr;
  std::uint64_t chunk_bytes = std::uint64_t{4} << 20;  // of text, about
};

/// A piece of text: whole documents, or a part of a file that is one; or rows of a table.
struct TextChunk {
  std::vector<TextChunk> more{};  // small files that follow it in the same chunk
  std::string text, path;
  std::uint64_t begin = 0;  // in the file, bytes
  bool begins_file = false, ends_file = false;
  std::uint64_t first_row = 0;
  std::vector<std::size_t> ends{};  // of the rows, in `text`
};

/// The tokens of a chunk.
struct ChunkTokens {
  std::string packed;                 // packed_tokens()
  std::uint64_t tokens = 0;           // in `packed`
  std::vector<std::uint64_t> starts;  // of the documents that begin in the chunk, in its tokens
};

/// Not for several threads at once.
class TextChunks {
 public:
  /// All are kept, not copied, and outlive this.
  TextChunks(const Corpus& corpus, const Tokenizer& tokenizer, const PrepareOptions& options);

  std::uint64_t count() const { return count_; }
  /// Its text may be empty: the chunk before it then ends with the file. Fast where `chunk`
  /// ascends from call to call.
  TextChunk read(std::uint64_t chunk);
  /// Input error: the text is not what the tokenizer reads, with the file and the place.
  ChunkTokens encode(const TextChunk& chunk) const;
  /// SHA-256, in hexadecimal digits, of all that decides encode(chunk).
  std::string key(const TextChunk& chunk) const;

 private:
  struct Piece {  // a file
    std::string path;
    std::uint64_t begin = 0, end = 0;  // in the corpus, bytes
    std::uint64_t first = 0;           // chunk, maybe together with files before it
  };
  /// The first place at or after `from` where `piece` may be cut.
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
  std::vector<std::uint64_t> first_rows_;  // of each chunk of a table; the end last
  std::uint64_t count_ = 0;
  std::uint64_t asked_ = 0, found_ = 0;  // of the last cut()
};

/// The first place in [from, text.size()] where a document of lines may begin: after a line break,
/// or (blank_line) at a line that is not empty after one that is. `text.size()`: none, or the text
/// ends too early to tell.
std::size_t document_cut(std::string_view text, std::size_t from, DocumentRule rule);

}  // namespace concertina
