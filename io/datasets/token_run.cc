#include "io/datasets/token_run.h"

#include <algorithm>
#include <array>
#include <bit>
#include <cstddef>
#include <cstring>
#include <filesystem>
#include <span>
#include <string_view>

#include "core/error.h"
#include "io/file.h"
#include "io/token_file.h"

namespace concertina {
namespace {

// Identifies the format of a file by its first bytes, where a file without a header was expected.
struct KnownStart {
  std::size_t at;
  std::string_view bytes, name;
};

constexpr KnownStart kKnownStarts[] = {
    {0, "\x93NUMPY", "a NumPy array"},
    {0, "PK\x03\x04", "a zip archive, such as a NumPy .npz"},
    {0, "\x1f\x8b", "a file compressed with gzip"},
    {0, "\x28\xb5\x2f\xfd", "a file compressed with zstd"},
    {0, "\xfd\x37zXZ", "a file compressed with xz"},
    {0, "BZh", "a file compressed with bzip2"},
    {0, "\x04\x22\x4d\x18", "a file compressed with lz4"},
    {0, "7z\xbc\xaf", "a file compressed with 7-Zip"},
    {0, "\x89HDF\r\n\x1a\n", "an HDF5 file"},
    {0, "PAR1", "a Parquet file"},
    {0, "ORC", "an ORC file"},
    {0, "ARROW1", "an Arrow file"},
    {0, "\xff\xff\xff\xff", "an Arrow stream"},
    {0, "FEA1", "a Feather file"},
    {0, "SQLite format 3", "an SQLite database"},
    {0, "\x89PNG\r\n", "an image"},
    {0, "\xff\xd8\xff", "an image"},
    {0, "GGUF", "a GGUF file"},
    {0, "LITPKDS", "a LitGPT packed dataset"},
    {0, "\x7f\x45LF", "an executable"},
    {0, "\xff\xfe", "UTF-16 text"},
    {0, "\xfe\xff", "UTF-16 text"},
    {5, {"\0\0\0{\"", 5}, "a safetensors file"},
    {257, "ustar", "a tar archive"},
};

/// Whether `start` begins a pickle of protocol 2 to 5: PROTO, then a usual opcode.
bool is_pickle(std::string_view start) {
  return start.size() > 2 && start[0] == '\x80' && start[1] >= 2 && start[1] <= 5 &&
         std::string_view("\x95\x8a]}(cX").find(start[2]) != std::string_view::npos;
}

bool is_text(char c) {
  const auto byte = static_cast<unsigned char>(c);
  return byte >= ' ' || (byte >= '\t' && byte <= '\r');
}

/// Whether nearly all nonzero 16-bit numbers are ASCII characters, in either byte order.
bool is_wide_text(std::string_view start) {
  std::size_t numbers = 0;
  std::array<std::size_t, 2> characters{};
  for (std::size_t i = 0; i + 1 < start.size(); i += 2) {
    numbers += start[i] != 0 || start[i + 1] != 0 ? 1 : 0;
    for (const std::size_t low : {0, 1})
      characters[low] += start[i + 1 - low] == 0 && is_text(start[i + low]) ? 1 : 0;
  }
  return numbers >= 64 && 20 * std::ranges::max(characters) > 19 * numbers;
}

/// Returns "a NumPy array", "a tar archive", "text", ..., or an empty string if unknown. `start`
/// has up to a few KB; 256 bytes suffice to recognize text: 16-bit tokens have bytes below 9, which
/// text lacks, and with a vocabulary above 1024 some tokens exceed ASCII.
std::string_view known_format(std::string_view start, std::int64_t vocabulary) {
  for (const KnownStart& known : kKnownStarts)
    if (start.size() >= known.at && start.substr(known.at).starts_with(known.bytes))
      return known.name;
  if (is_pickle(start)) return "a Python pickle";
  if (start.size() < 256) return {};
  if (std::ranges::all_of(start, is_text)) return "text";
  return vocabulary > 1024 && is_wide_text(start) ? "UTF-16 or UTF-32 text" : std::string_view{};
}

static_assert(std::endian::native == std::endian::little);

template <class T>
T number_at(std::string_view bytes, std::uint64_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string some_bytes(const std::string& path, std::uint64_t from, std::uint64_t most) {
  const File file(path, File::Mode::read);
  std::string bytes(std::min(most, file.size() - from), '\0');
  file.read_at(from, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

constexpr std::int32_t kLlmcU16 = 20240520, kLlmcU32 = 20240801, kLlmcEval = 20240522;
constexpr std::uint64_t kLlmcHeader = 1024;

/// Whether the file has an llm.c header, which is then stored in `run`.
bool read_llmc(const std::string& path, std::uint64_t bytes, TokenRun& run) {
  const std::string header = some_bytes(path, 0, kLlmcHeader);
  if (header.size() < 4) return false;
  const auto magic = number_at<std::int32_t>(header, 0);
  if (magic == kLlmcEval)
    refuse_tokens("this is an llm.c evaluation file, not text", path, 0,
                  "use its train or val file");
  if (magic != kLlmcU16 && magic != kLlmcU32) return false;
  if (header.size() < kLlmcHeader) refuse_tokens("an llm.c header has 1024 bytes", path, bytes);
  const auto version = number_at<std::int32_t>(header, 4);
  if (version != (magic == kLlmcU16 ? 1 : 7))
    refuse_tokens(fmt::format("unknown version {} of llm.c's format", version), path, 4);
  run.width = magic == kLlmcU16 ? 2 : 4;
  run.offset = kLlmcHeader;
  const auto declared = number_at<std::int32_t>(header, 8);
  if (declared < 0 || static_cast<std::uint64_t>(declared) * run.width != bytes - kLlmcHeader)
    refuse_tokens(fmt::format("the header specifies {} tokens of {} bytes, but {} bytes follow it",
                              declared, run.width, bytes - kLlmcHeader),
                  path, 8);
  for (std::uint64_t at = 12; at < kLlmcHeader; ++at)
    if (header[at] != 0) refuse_tokens("expected zeros in the rest of llm.c's header", path, at);
  run.size = static_cast<std::uint64_t>(declared);
  return true;
}

/// Whether `start` is an llm.c header except for its magic number, or a big-endian one.
bool has_llmc_header(std::string_view start, std::uint64_t bytes) {
  if (start.size() < kLlmcHeader) return false;
  const auto swapped =
      static_cast<std::int32_t>(__builtin_bswap32(number_at<std::uint32_t>(start, 0)));
  if (swapped == kLlmcU16 || swapped == kLlmcU32) return true;
  const std::uint64_t declared = number_at<std::uint32_t>(start, 8), rest = bytes - kLlmcHeader;
  return declared > 0 && (declared * 2 == rest || declared * 4 == rest) &&
         start.substr(12, kLlmcHeader - 12).find_first_not_of('\0') == std::string_view::npos;
}

/// Whether numbers of type T are halves of wider ones: every second one is far smaller than the
/// others. The upper halves of 32-bit tokens are below 16 for any vocabulary of up to 2^20.
template <class T>
bool has_halves(std::string_view bytes) {
  constexpr int kMostUpper = 15, kEnough = 64;
  T upper = 0;
  int larger = 0;
  for (std::uint64_t at = 0; at + 2 * sizeof(T) <= bytes.size(); at += 2 * sizeof(T))
    upper = std::max(upper, number_at<T>(bytes, at + sizeof(T)));
  for (std::uint64_t at = 0; at + 2 * sizeof(T) <= bytes.size(); at += 2 * sizeof(T))
    larger += number_at<T>(bytes, at) > upper ? 1 : 0;
  return upper <= kMostUpper && larger >= kEnough;
}

/// Throws Error{bad_input} if the tokens of a file without a header seem to have a different width.
void require_width(const std::string& path, std::uint64_t bytes, int width, std::int64_t vocabulary,
                   const std::string& kinds) {
  for (const std::uint64_t from : {std::uint64_t{0}, bytes / 16 * 8}) {
    const std::string some = some_bytes(path, from, 1 << 16);
    const int found = has_halves<std::uint32_t>(some) ? 8 : has_halves<std::uint16_t>(some) ? 4 : 2;
    bool differs = found > width;
    for (std::uint64_t at = 0; at + 4 <= some.size() && width == 4 && found == 2; at += 4)
      differs = differs || number_at<std::uint32_t>(some, at) >= vocabulary;
    if (differs)
      refuse_tokens(fmt::format("the file seems to have {}-bit tokens, but for a vocabulary of {}, "
                                "a file without a header must have {}-bit tokens",
                                8 * found, vocabulary, 8 * width),
                    path, from, kinds);
  }
  if (bytes % static_cast<std::uint64_t>(width) != 0)
    refuse_tokens(fmt::format("tokens of {} bytes do not match the file size {}", width, bytes),
                  path, bytes, kinds);
}

/// Returns the token width of a file without a header, which depends only on the vocabulary.
/// Files that look like another format are therefore rejected.
int bare_width(const std::string& path, std::uint64_t bytes, std::int64_t vocabulary) {
  const int width = TokenFileInfo::width_of(static_cast<std::uint64_t>(vocabulary));
  const std::string kinds = fmt::format(
      "use a file of {}-bit tokens without a header, or one written by llm.c, Megatron (.bin and "
      ".idx) or `data prepare`",
      8 * width);
  const std::string start = some_bytes(path, 0, 1 << 16);
  if (const std::string_view known = known_format(start, vocabulary); !known.empty())
    refuse_tokens(fmt::format("this is {}, not tokens", known), path, 0, kinds);
  if (has_llmc_header(start, bytes))
    refuse_tokens(fmt::format("the header looks like llm.c's, but has the unknown magic number {}",
                              number_at<std::int32_t>(start, 0)),
                  path, 0);
  require_width(path, bytes, width, vocabulary, kinds);
  return width;
}

/// Returns the width of Megatron's type `code`, or 0 if it is not an integer type.
int megatron_width(int code) {
  constexpr std::array kWidths{0, 1, 1, 2, 4, 8, 0, 0, 2};
  return code >= 1 && code <= 8 ? kWidths[static_cast<std::size_t>(code)] : 0;
}

/// Requires sequences to be contiguous, and documents to consist of whole sequences.
void check_megatron(const std::string& index, const std::string& path, std::uint64_t sequences,
                    std::uint64_t documents, int width, std::uint64_t bytes) {
  const std::uint64_t lengths = 34, offsets = lengths + 4 * sequences,
                      bounds = offsets + 8 * sequences;
  std::uint64_t end = 0;
  for (std::uint64_t s = 0; s < sequences; ++s) {
    const auto length = number_at<std::int32_t>(index, lengths + 4 * s);
    if (length < 0)
      refuse_tokens(fmt::format("sequence {} has the invalid length {}", s, length), path,
                    lengths + 4 * s);
    if (const auto offset = number_at<std::uint64_t>(index, offsets + 8 * s); offset != end)
      refuse_tokens(fmt::format("sequence {} begins at byte {} of the .bin file, but the "
                                "previous one ends at {}",
                                s, offset, end),
                    path, offsets + 8 * s);
    end += static_cast<std::uint64_t>(length) * width;
  }
  if (end != bytes)
    refuse_tokens(fmt::format("the sequences have {} bytes, but the .bin file has {}", end, bytes),
                  path, offsets);
  std::uint64_t last = 0;
  for (std::uint64_t d = 0; d < documents; ++d) {
    const auto at = number_at<std::uint64_t>(index, bounds + 8 * d);
    if (at < last || at > sequences || (d == 0 && at != 0) ||
        (d + 1 == documents && at != sequences))
      refuse_tokens(fmt::format("document {} begins at sequence {} of {}; expected values "
                                "ascending from 0 to the number of sequences",
                                d, at, sequences),
                    path, bounds + 8 * d);
    last = at;
  }
}

void read_megatron(const std::string& path, std::uint64_t bytes, TokenRun& run) {
  const std::string index = read_file(path, std::uint64_t{16} << 30);
  constexpr std::string_view kMagic("MMIDIDX\0\0", 9);
  if (!index.starts_with(kMagic)) refuse_tokens("the file does not begin with MMIDIDX", path, 0);
  if (index.size() < 34) refuse_tokens("expected a header of 34 bytes", path, index.size());
  if (const auto version = number_at<std::uint64_t>(index, 9); version != 1)
    refuse_tokens(fmt::format("unknown version {}", version), path, 9);
  const int code = static_cast<unsigned char>(index[17]);
  run.width = megatron_width(code);
  if (run.width == 0) refuse_tokens(fmt::format("type {} is not an integer type", code), path, 17);
  run.is_signed = code >= 2 && code <= 5;
  const auto sequences = number_at<std::uint64_t>(index, 18);
  const auto documents = number_at<std::uint64_t>(index, 26);
  const std::uint64_t room = index.size() - 34;
  if (sequences > room / 12 || documents > (room - 12 * sequences) / 8 ||
      12 * sequences + 8 * documents != room)
    refuse_tokens(fmt::format("{} sequences and {} document bounds do not match a file of {} bytes",
                              sequences, documents, index.size()),
                  path, 18, "use a text index (multimodal indexes are not supported)");
  check_megatron(index, path, sequences, documents, run.width, bytes);
  run.size = bytes / static_cast<std::uint64_t>(run.width);
  run.parted = true;
}

/// Documents consist of whole sequences, whose lengths have been checked.
std::vector<std::uint64_t> megatron_bounds(const std::string& path) {
  const std::string index = read_file(path, std::uint64_t{16} << 30);
  const auto sequences = number_at<std::uint64_t>(index, 18);
  const auto documents = number_at<std::uint64_t>(index, 26);
  std::vector<std::uint64_t> bounds;
  std::uint64_t sequence = 0, at = 0;
  for (std::uint64_t d = 0; d < documents; ++d) {
    const auto first = number_at<std::uint64_t>(index, 34 + 12 * sequences + 8 * d);
    for (; sequence < first; ++sequence)
      at += static_cast<std::uint64_t>(number_at<std::int32_t>(index, 34 + 4 * sequence));
    bounds.push_back(at);
  }
  return bounds;
}

TokenRun run_of_ours(const std::string& path) {
  const TokenFileInfo info = TokenFile(path).info();
  TokenRun run;
  run.path = path;
  run.offset = TokenFileInfo::kTokensAt;
  run.size = info.tokens;
  run.width = info.width();
  run.vocabulary = static_cast<std::int64_t>(info.vocabulary);
  run.tokenizer = info.tokenizer;
  run.hashed = run.parted = true;
  return run;
}

}  // namespace

void refuse_tokens(const std::string& what, const std::string& path, std::uint64_t at,
                   const std::string& fix) {
  throw_input(what, fmt::format("{}: byte {}", path, at), fix);
}

std::string adjacent_index(const std::string& path) {
  if (!path.ends_with(".bin")) return "";
  const std::string index = path.substr(0, path.size() - 4) + ".idx";
  return std::filesystem::exists(index) ? index : "";
}

void append_bounds(const TokenRun& run, std::vector<std::uint64_t>& bounds) {
  std::vector<std::uint64_t> own;
  if (run.hashed) {
    const TokenFile file(run.path);
    own.resize(file.info().documents + 1);
    file.bounds(0, own);
  } else {
    own = megatron_bounds(adjacent_index(run.path));
  }
  own.push_back(run.size);
  for (const std::uint64_t bound : own)
    if (const std::uint64_t at = run.first + bound; at > bounds.back()) bounds.push_back(at);
}

TokenRun read_token_run(const std::string& path, std::uint64_t bytes, std::int64_t vocabulary) {
  if (is_token_file(path)) return run_of_ours(path);
  TokenRun run;
  run.path = path;
  if (const std::string index = adjacent_index(path); !index.empty()) {
    read_megatron(index, bytes, run);
  } else if (!read_llmc(path, bytes, run)) {
    run.width = bare_width(path, bytes, vocabulary);
    run.size = bytes / static_cast<std::uint64_t>(run.width);
  }
  return run;
}

}  // namespace concertina
