#include "io/prepare/text_chunks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <span>

#include "core/error.h"
#include "io/sha256.h"
#include "io/token_file.h"

namespace concertina {
namespace {

/// Number of bytes that a rule must see before a split position: a UTF-8 character before a line
/// break.
constexpr std::uint64_t kBefore = 8;
constexpr std::uint64_t kFirstLook = std::uint64_t{64} << 10;

bool begins_after_empty_line(std::string_view text, std::size_t at) {
  const std::string_view before = text.substr(0, at), after = text.substr(at);
  return (before.ends_with("\n\n") || before.ends_with("\n\r\n")) && !after.starts_with('\n') &&
         !after.starts_with("\r\n") && after != "\r";
}

/// Returns a document without its trailing line breaks.
std::string_view without_breaks(std::string_view text, DocumentRule rule) {
  while (rule != DocumentRule::file && text.ends_with('\n')) {
    text.remove_suffix(text.ends_with("\r\n") ? 2 : 1);
    if (rule == DocumentRule::line) break;
  }
  return text;
}

}  // namespace

std::size_t document_cut(std::string_view text, std::size_t from, DocumentRule rule) {
  for (std::size_t at = std::max<std::size_t>(from, 1); at < text.size(); ++at) {
    const std::size_t line = text.find('\n', at - 1);
    if (line == std::string_view::npos || line + 1 >= text.size()) break;
    at = line + 1;
    if (rule == DocumentRule::line || begins_after_empty_line(text, at)) return at;
  }
  return text.size();
}

TextChunks::TextChunks(const Corpus& corpus, const Tokenizer& tokenizer,
                       const PrepareOptions& options)
    : corpus_(corpus), tokenizer_(tokenizer), options_(options) {
  CONCERTINA_CHECK(options.chunk_bytes > kBefore, "chunk size {}", options.chunk_bytes);
  if (options.rows != nullptr) {
    const std::span<const LabelledRow> rows = options.rows->rows();
    std::uint64_t bytes = options.chunk_bytes;  // of the chunk so far
    for (std::uint64_t row = 0; row < rows.size(); ++row) {
      if (bytes >= options.chunk_bytes) first_rows_.push_back(row), bytes = 0;
      bytes += rows[row].text[0].size();
    }
    count_ = first_rows_.size();
    first_rows_.push_back(rows.size());
    return;
  }
  std::uint64_t begin = 0, room = 0;  // space left in the last chunk, if it has only whole files
  for (const FileStamp& file : corpus.stamps()) {
    Piece& piece = pieces_.emplace_back();
    piece.path = file.path;
    piece.begin = begin;
    piece.end = begin += file.size;
    if (file.size > room) {
      piece.first = count_;
      count_ += (file.size + options.chunk_bytes - 1) / options.chunk_bytes;
      room = std::max(file.size, options.chunk_bytes);
    } else {
      piece.first = count_ - 1;
    }
    room -= file.size;
  }
  CONCERTINA_CHECK(begin == corpus.size(), "{} of {} bytes", begin, corpus.size());
}

std::string TextChunks::text(std::uint64_t begin, std::uint64_t end) const {
  std::string bytes(end - begin, '\0');
  corpus_.read(begin, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

/// Reads only part of the file first, and more of it if that part has no split position.
std::uint64_t TextChunks::cut(const Piece& piece, std::uint64_t from) {
  if (from <= piece.begin) return piece.begin;
  if (from >= piece.end) return piece.end;
  if (from >= asked_ && from <= found_) return found_;  // the first from `asked_` on
  const std::uint64_t begin = from - std::min(kBefore, from - piece.begin);
  for (std::uint64_t look = kFirstLook;; look *= 8) {
    const std::uint64_t end = std::min(piece.end, from + look);
    const std::string part = text(begin, end);
    const std::size_t at = options_.documents == DocumentRule::file
                               ? tokenizer_.cut(part, from - begin)
                               : document_cut(part, from - begin, options_.documents);
    if (at == part.size() && end < piece.end) continue;
    asked_ = from;
    return found_ = begin + at;
  }
}

TextChunk TextChunks::read(std::uint64_t chunk) {
  CONCERTINA_CHECK(chunk < count_, "chunk {} is not in [0, {})", chunk, count_);
  if (options_.rows != nullptr) return read_rows(chunk);
  const auto end = std::ranges::upper_bound(pieces_, chunk, {}, &Piece::first);
  const auto first = std::ranges::lower_bound(pieces_, std::prev(end)->first, {}, &Piece::first);
  TextChunk made = part_of(*first, chunk);
  for (auto piece = first + 1; piece < end; ++piece) made.more.push_back(part_of(*piece, chunk));
  return made;
}

TextChunk TextChunks::part_of(const Piece& piece, std::uint64_t chunk) {
  const std::uint64_t from = piece.begin + (chunk - piece.first) * options_.chunk_bytes;
  const std::uint64_t begin = cut(piece, from), end = cut(piece, from + options_.chunk_bytes);
  return {.text = text(begin, end),
          .path = piece.path,
          .begin = begin - piece.begin,
          .begins_file = begin == piece.begin,
          .ends_file = begin < end && end == piece.end};
}

TextChunk TextChunks::read_rows(std::uint64_t chunk) const {
  TextChunk made;
  made.first_row = first_rows_[chunk];
  for (std::uint64_t row = made.first_row; row < first_rows_[chunk + 1]; ++row) {
    made.text += options_.rows->rows()[row].text[0];
    made.ends.push_back(made.text.size());
  }
  return made;
}

void TextChunks::encode_rows(const TextChunk& chunk, ChunkTokens& made,
                             std::vector<std::int32_t>& tokens) const {
  std::size_t begin = 0;
  for (std::size_t i = 0; i < chunk.ends.size(); begin = chunk.ends[i++]) {
    const std::size_t before = tokens.size();
    try {
      tokenizer_.encode(std::string_view(chunk.text).substr(begin, chunk.ends[i] - begin), tokens);
    } catch (const Error& error) {
      throw_input(error.message(), options_.rows->place_of(chunk.first_row + i), error.fix());
    }
    if (tokens.size() == before) continue;
    made.starts.push_back(before);
    tokens.insert(tokens.end(), options_.end.begin(), options_.end.end());
  }
}

void TextChunks::encode_document(std::string_view text, bool ends, const TextChunk& chunk,
                                 std::vector<std::int32_t>& tokens) const {
  const std::string_view plain =
      options_.end.empty() ? text : without_breaks(text, options_.documents);
  const std::size_t before = tokens.size();
  try {
    const std::vector<std::int32_t> own = tokenizer_.tokens(plain);  // encode() reserves exactly
    tokens.insert(tokens.end(), own.begin(), own.end());
  } catch (const Error& error) {
    throw_input(
        fmt::format("{}, relative to byte {}", error.message(),
                    chunk.begin + static_cast<std::uint64_t>(text.data() - chunk.text.data())),
        chunk.path, error.fix());
  }
  const bool is_file = options_.documents == DocumentRule::file;
  if (ends && (is_file || tokens.size() > before))
    tokens.insert(tokens.end(), options_.end.begin(), options_.end.end());
}

ChunkTokens TextChunks::encode(const TextChunk& chunk) const {
  ChunkTokens made;
  std::vector<std::int32_t> tokens;
  encode(chunk, made, tokens);
  made.tokens = tokens.size();
  made.packed = packed_tokens(
      tokens, TokenFileInfo::width_of(static_cast<std::uint64_t>(tokenizer_.vocabulary())));
  return made;
}

void TextChunks::encode(const TextChunk& chunk, ChunkTokens& made,
                        std::vector<std::int32_t>& tokens) const {
  if (options_.rows != nullptr) {
    encode_rows(chunk, made, tokens);
  } else if (options_.documents == DocumentRule::file) {
    if (chunk.begins_file) made.starts.push_back(tokens.size());
    if (!chunk.text.empty()) encode_document(chunk.text, chunk.ends_file, chunk, tokens);
  } else {
    for (std::string_view left = chunk.text; !left.empty();) {
      const std::size_t end = document_cut(left, 1, options_.documents);
      const std::uint64_t before = tokens.size();
      encode_document(left.substr(0, end), true, chunk, tokens);
      if (tokens.size() > before) made.starts.push_back(before);  // otherwise the document is empty
      left.remove_prefix(end);
    }
  }
  for (const TextChunk& file : chunk.more) encode(file, made, tokens);
}

std::string TextChunks::key(const TextChunk& chunk) const {
  Sha256 hash;
  hash.update(fmt::format("{} {} {} {} {} {}\n", tokenizer_.fingerprint(), tokenizer_.vocabulary(),
                          static_cast<int>(options_.documents), fmt::join(options_.end, ","),
                          chunk.begins_file, chunk.ends_file));
  for (const std::size_t end : chunk.ends) hash.update(fmt::format("{} ", end));
  hash.update(chunk.text);
  for (const TextChunk& file : chunk.more) hash.update(key(file));
  return hash.hex();
}

}  // namespace concertina
