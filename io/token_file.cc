#include "io/token_file.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <boost/algorithm/hex.hpp>

#include <cstring>

#include "core/error.h"
#include "io/for_all.h"

namespace concertina {
namespace {

static_assert(std::endian::native == std::endian::little);

constexpr std::string_view kTokenMagic = "concertina token file 1\n";
constexpr std::uint64_t kHashedHeader = 96, kHashBlock = std::uint64_t{16} << 20;
constexpr std::size_t kReadAtOnce = std::size_t{1} << 20;

[[noreturn]] void refuse_token_file(const std::string& what, const std::string& path,
                                    std::uint64_t at) {
  throw_input(what, fmt::format("{}: byte {}", path, at),
              "use the unmodified file written by `concertina data prepare`");
}

/// Returns the 32 bytes encoded by 64 hexadecimal digits.
std::string bytes_of_hex(const std::string& hex) {
  CONCERTINA_CHECK(is_sha256_hex(hex), "'{}' is not a SHA-256", hex);
  return boost::algorithm::unhex(hex);
}

template <class T>
void append_number(std::string& bytes, T value) {
  bytes.append(reinterpret_cast<const char*>(&value), sizeof value);
}

template <class T>
T number_in(std::string_view bytes, std::size_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

/// The header except for the hash.
std::string hashed_header(const TokenFileInfo& info) {
  std::string header(kTokenMagic);
  append_number(header, static_cast<std::uint32_t>(info.width()));
  append_number(header, std::uint32_t{0});
  for (const std::uint64_t value : {info.vocabulary, info.tokens, info.documents, std::uint64_t{0}})
    append_number(header, value);
  return header + bytes_of_hex(info.tokenizer);
}

/// Returns the hash of the header and of the hexadecimal hashes of the blocks.
std::string hash_of_all(const TokenFileInfo& info, const std::vector<std::string>& blocks) {
  Sha256 hash;
  hash.update(hashed_header(info));
  for (const std::string& block : blocks) hash.update(block);
  return hash.hex();
}

std::string hash_of_block(const File& file, const TokenFileInfo& info, std::uint64_t block) {
  std::uint64_t at = TokenFileInfo::kTokensAt + block * kHashBlock;
  const std::uint64_t end = std::min(at + kHashBlock, info.bytes());
  std::vector<std::byte> buffer(std::min<std::uint64_t>(kReadAtOnce, end - at));
  Sha256 hash;
  while (at < end) {
    const auto part = std::span(buffer).first(std::min<std::uint64_t>(buffer.size(), end - at));
    file.read_at(at, part);
    hash.update(part);
    at += part.size();
  }
  return hash.hex();
}

/// Checks the counts against the file's length before they are used.
TokenFileInfo info_of(std::string_view header, std::uint64_t bytes, const std::string& path) {
  if (!header.starts_with(kTokenMagic))
    refuse_token_file("the file does not begin with \"concertina token file 1\"", path, 0);
  if (header.size() < TokenFileInfo::kTokensAt)
    refuse_token_file("expected a header of 128 bytes", path, header.size());
  TokenFileInfo info;
  info.vocabulary = number_in<std::uint64_t>(header, 32);
  info.tokens = number_in<std::uint64_t>(header, 40);
  info.documents = number_in<std::uint64_t>(header, 48);
  if (info.vocabulary == 0 || info.vocabulary > TokenFileInfo::kLargestVocabulary)
    refuse_token_file(fmt::format("the vocabulary size {} is not in [1, 2^31]", info.vocabulary),
                      path, 32);
  if (const auto width = number_in<std::uint32_t>(header, 24);
      width != static_cast<std::uint32_t>(info.width()))
    refuse_token_file(fmt::format("tokens have {} bytes, but a vocabulary of {} needs {}", width,
                                  info.vocabulary, info.width()),
                      path, 24);
  for (const std::size_t at : {28, 56, 60})
    if (number_in<std::uint32_t>(header, at) != 0)
      refuse_token_file("expected zeros in the rest of the header", path, at);
  const std::uint64_t room = bytes - TokenFileInfo::kTokensAt;
  if (info.tokens > room / static_cast<std::uint64_t>(info.width()) || info.documents > room / 8 ||
      info.bytes() != bytes)
    refuse_token_file(fmt::format("{} tokens and {} documents do not match a file of {} bytes",
                                  info.tokens, info.documents, bytes),
                      path, 40);
  info.tokenizer = boost::algorithm::hex_lower(std::string(header.substr(64, 32)));
  info.sha256 = boost::algorithm::hex_lower(std::string(header.substr(96, 32)));
  return info;
}

std::string header_of(const File& file) {
  std::string header(std::min<std::uint64_t>(file.size(), TokenFileInfo::kTokensAt), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(header)));
  return header;
}

}  // namespace

std::uint64_t TokenFileInfo::blocks() const {
  return (bytes() - kTokensAt + kHashBlock - 1) / kHashBlock;
}

bool is_token_file(const std::string& path) {
  const std::string header = header_of(File(path, File::Mode::read));
  std::size_t same = 0;
  for (std::size_t i = 0; i < std::min(header.size(), kTokenMagic.size()); ++i)
    same += header[i] == kTokenMagic[i] ? 1 : 0;
  return same >= kTokenMagic.size() / 2;
}

std::string packed_tokens(std::span<const std::int32_t> tokens, int width) {
  std::string packed(tokens.size() * static_cast<std::size_t>(width), '\0');
  if (width == 4) {
    std::memcpy(packed.data(), tokens.data(), packed.size());
    return packed;
  }
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const auto narrow = static_cast<std::uint16_t>(tokens[i]);
    std::memcpy(packed.data() + 2 * i, &narrow, 2);
  }
  return packed;
}

TokenFile::TokenFile(const std::string& path) : file_(path, File::Mode::read) {
  info_ = info_of(header_of(file_), file_.size(), path);
  std::uint64_t end = 0;  // the padding may hide one token more or fewer
  bounds(info_.documents, std::span(&end, 1));
}

void TokenFile::read(std::uint64_t begin, std::span<std::int32_t> tokens) const {
  const auto width = static_cast<std::uint64_t>(info_.width());
  CONCERTINA_CHECK(begin <= info_.tokens && tokens.size() <= info_.tokens - begin,
                   "tokens [{}, +{}) are not in [0, {})", begin, tokens.size(), info_.tokens);
  const std::uint64_t at = TokenFileInfo::kTokensAt + begin * width;
  std::string packed(tokens.size() * width, '\0');
  file_.read_at(at, std::as_writable_bytes(std::span(packed)));
  for (std::size_t i = 0; i < tokens.size(); ++i) {
    const std::uint32_t token = width == 2 ? number_in<std::uint16_t>(packed, 2 * i)
                                           : number_in<std::uint32_t>(packed, 4 * i);
    if (token >= info_.vocabulary)
      refuse_token_file(
          fmt::format("token {} is not in the vocabulary [0, {})", token, info_.vocabulary),
          file_.path(), at + i * width);
    tokens[i] = static_cast<std::int32_t>(token);
  }
}

void TokenFile::bounds(std::uint64_t first, std::span<std::uint64_t> bounds) const {
  CONCERTINA_CHECK(first <= info_.documents && bounds.size() <= info_.documents + 1 - first,
                   "documents [{}, +{}) are not in [0, {}]", first, bounds.size(), info_.documents);
  const std::uint64_t at = info_.bounds_at() + 8 * first;
  file_.read_at(at, std::as_writable_bytes(bounds));
  for (std::size_t i = 0; i < bounds.size(); ++i) {
    const std::uint64_t document = first + i;
    if ((document == 0 && bounds[i] != 0) || (i > 0 && bounds[i] < bounds[i - 1]) ||
        bounds[i] > info_.tokens || (document == info_.documents && bounds[i] != info_.tokens))
      refuse_token_file(
          fmt::format("document {} begins at token {}; expected ascending values from 0 to {}",
                      document, bounds[i], info_.tokens),
          file_.path(), at + 8 * i);
  }
}

void TokenFile::verify(const std::function<void()>& progress) const {
  std::vector<std::string> blocks(info_.blocks());
  for_all(blocks.size(), progress,
          [&](std::size_t i) { blocks[i] = hash_of_block(file_, info_, i); });
  if (const std::string hash = hash_of_all(info_, blocks); hash != info_.sha256)
    refuse_token_file(fmt::format("the file is damaged: its SHA-256 is {}, but the header has {}",
                                  hash, info_.sha256),
                      file_.path(), kHashedHeader);
  const std::uint64_t parts = (info_.tokens + kReadAtOnce - 1) / kReadAtOnce;
  for_all(parts, progress, [&](std::size_t i) {
    std::vector<std::int32_t> some(
        std::min<std::uint64_t>(kReadAtOnce, info_.tokens - i * kReadAtOnce));
    read(i * kReadAtOnce, some);
  });
  // Adjacent parts share a bound.
  for (std::uint64_t first = 0; first <= info_.documents; first += kReadAtOnce) {
    std::vector<std::uint64_t> some(
        std::min<std::uint64_t>(kReadAtOnce + 1, info_.documents + 1 - first));
    bounds(first, some);
  }
}

TokenFileWriter::TokenFileWriter(const std::string& path, TokenFileInfo info, bool create)
    : info_(std::move(info)), file_(path, File::Mode::open_or_create) {
  CONCERTINA_CHECK(info_.vocabulary >= 1 && info_.vocabulary <= TokenFileInfo::kLargestVocabulary,
                   "vocabulary of {} tokens", info_.vocabulary);
  if (!create) return;
  file_.truncate(0);
  file_.reserve(info_.bytes());
}

void TokenFileWriter::write_tokens(std::uint64_t first, std::string_view packed) {
  file_.write_at(TokenFileInfo::kTokensAt + first * static_cast<std::uint64_t>(info_.width()),
                 std::as_bytes(std::span(packed)));
}

void TokenFileWriter::write_bounds(std::uint64_t first, std::span<const std::uint64_t> bounds) {
  file_.write_at(info_.bounds_at() + 8 * first, std::as_bytes(bounds));
}

std::string TokenFileWriter::block_sha256(std::uint64_t block) const {
  return hash_of_block(file_, info_, block);
}

void TokenFileWriter::finish(const std::vector<std::string>& blocks) {
  CONCERTINA_CHECK(blocks.size() == info_.blocks(), "got {} of {} blocks", blocks.size(),
                   info_.blocks());
  info_.sha256 = hash_of_all(info_, blocks);
  const std::string header = hashed_header(info_) + bytes_of_hex(info_.sha256);
  file_.write_at(0, std::as_bytes(std::span(header)));
  file_.sync();
  file_.close();
}

}  // namespace concertina
