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

// The format of a file by its first bytes, where a file without a header was expected.
struct KnownStart {
  std::size_t at;
  std::string_view bytes, name;
};

constexpr KnownStart kKnownStarts[] = {
    {0, "\x93NUMPY", "an array of NumPy"},
    {0, "PK\x03\x04", "a zip archive, such as an .npz of NumPy"},
    {0, "\x1f\x8b", "a file that gzip has packed"},
    {0, "\x28\xb5\x2f\xfd", "a file that zstd has packed"},
    {0,
     "\xfd"
     "7zXZ",
     "a file that xz has packed"},
    {0, "BZh", "a file that bzip2 has packed"},
    {0, "\x89HDF\r\n\x1a\n", "an HDF5 file"},
    {0, "PAR1", "a Parquet file"},
    {0, "ARROW1", "an Arrow file"},
    {0,
     "\x7f"
     "ELF",
     "a program"},
    {257, "ustar", "a tar"},
};

/// Tokens of 16 bits have bytes below 9, which no text has.
bool is_text(std::string_view start) {
  constexpr std::size_t kEnough = 256;
  return start.size() >= kEnough && std::ranges::all_of(start, [](char c) {
           const auto byte = static_cast<unsigned char>(c);
           return byte >= ' ' || (byte >= '\t' && byte <= '\r');
         });
}

/// "an array of NumPy", "an archive", "text", ...; empty: nothing that is known. `start`: up to
/// some KB; it is told to be text from 256 bytes on.
std::string_view known_format(std::string_view start) {
  for (const KnownStart& known : kKnownStarts)
    if (start.size() >= known.at && start.substr(known.at).starts_with(known.bytes))
      return known.name;
  return is_text(start) ? "text" : std::string_view{};
}

static_assert(std::endian::native == std::endian::little);

template <class T>
T number_at(std::string_view bytes, std::uint64_t at) {
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string first_bytes(const std::string& path, std::uint64_t most) {
  const File file(path, File::Mode::read);
  std::string bytes(std::min(most, file.size()), '\0');
  file.read_at(0, std::as_writable_bytes(std::span(bytes)));
  return bytes;
}

constexpr std::int32_t kLlmcU16 = 20240520, kLlmcU32 = 20240801, kLlmcEval = 20240522;
constexpr std::uint64_t kLlmcHeader = 1024;

/// Whether the header is one of llm.c's; `run` is then what it says.
bool read_llmc(const std::string& path, std::uint64_t bytes, TokenRun& run) {
  const std::string header = first_bytes(path, kLlmcHeader);
  if (header.size() < 4) return false;
  const auto magic = number_at<std::int32_t>(header, 0);
  if (magic == kLlmcEval)
    refuse_tokens("this is an evaluation file of llm.c, no text", path, 0, "its train or val file");
  if (magic != kLlmcU16 && magic != kLlmcU32) return false;
  if (header.size() < kLlmcHeader) refuse_tokens("llm.c's header has 1024 bytes", path, bytes);
  const auto version = number_at<std::int32_t>(header, 4);
  if (version != (magic == kLlmcU16 ? 1 : 7))
    refuse_tokens(fmt::format("version {} of llm.c's format is unknown", version), path, 4);
  run.width = magic == kLlmcU16 ? 2 : 4;
  run.offset = kLlmcHeader;
  const auto said = number_at<std::int32_t>(header, 8);
  if (said < 0 || static_cast<std::uint64_t>(said) * run.width != bytes - kLlmcHeader)
    refuse_tokens(fmt::format("the header says {} tokens of {} bytes, and {} bytes follow it", said,
                              run.width, bytes - kLlmcHeader),
                  path, 8);
  for (std::uint64_t at = 12; at < kLlmcHeader; ++at)
    if (header[at] != 0) refuse_tokens("the rest of llm.c's header is 0", path, at);
  run.size = static_cast<std::uint64_t>(said);
  return true;
}

/// Whether `start` is llm.c's header but for its magic number, or with it and numbers big-endian.
bool has_llmc_header(std::string_view start, std::uint64_t bytes) {
  if (start.size() < kLlmcHeader) return false;
  const auto swapped =
      static_cast<std::int32_t>(__builtin_bswap32(number_at<std::uint32_t>(start, 0)));
  if (swapped == kLlmcU16 || swapped == kLlmcU32) return true;
  const std::uint64_t said = number_at<std::uint32_t>(start, 8), rest = bytes - kLlmcHeader;
  return said > 0 && (said * 2 == rest || said * 4 == rest) &&
         start.substr(12, kLlmcHeader - 12).find_first_not_of('\0') == std::string_view::npos;
}

/// Whether every second number of 16 bits is 0, and the others are not: those of 32 or 64 bits.
bool has_wide_tokens(std::string_view start) {
  constexpr int kEnough = 64;
  int others = 0;
  for (std::uint64_t at = 0; at + 4 <= start.size(); at += 4) {
    if (number_at<std::uint16_t>(start, at + 2) != 0) return false;
    if (number_at<std::uint16_t>(start, at) != 0) ++others;
  }
  return others >= kEnough;
}

/// Nothing in a file without a header says that it is one of 16-bit tokens; so what looks like
/// another kind is refused.
void require_bare_tokens(const std::string& path, std::uint64_t bytes) {
  const std::string kinds =
      "a file of 16-bit tokens (nanoGPT), llm.c's, or Megatron's .bin beside its .idx";
  const std::string start = first_bytes(path, 1 << 16);
  if (const std::string_view known = known_format(start); !known.empty())
    refuse_tokens(fmt::format("this is {}, not tokens", known), path, 0, kinds);
  if (bytes % 2 != 0)
    refuse_tokens(fmt::format("tokens of 2 bytes do not make a file of {}", bytes), path, bytes,
                  kinds);
  if (has_llmc_header(start, bytes))
    refuse_tokens(fmt::format("{} is no magic number of llm.c, and the rest is its header",
                              number_at<std::int32_t>(start, 0)),
                  path, 0);
  if (has_wide_tokens(start))
    refuse_tokens("every second token of 2 bytes is 0: these seem to have 4 or 8", path, 2, kinds);
}

/// Width of Megatron's type `code`; 0: not one of tokens.
int megatron_width(int code) {
  constexpr std::array kWidths{0, 1, 1, 2, 4, 8, 0, 0, 2};
  return code >= 1 && code <= 8 ? kWidths[static_cast<std::size_t>(code)] : 0;
}

/// Sequences lie one after the other, and documents are of whole sequences.
void check_megatron(const std::string& index, const std::string& path, std::uint64_t sequences,
                    std::uint64_t documents, int width, std::uint64_t bytes) {
  const std::uint64_t lengths = 34, offsets = lengths + 4 * sequences,
                      bounds = offsets + 8 * sequences;
  std::uint64_t end = 0;
  for (std::uint64_t s = 0; s < sequences; ++s) {
    const auto length = number_at<std::int32_t>(index, lengths + 4 * s);
    if (length < 0)
      refuse_tokens(fmt::format("sequence {} has length {}", s, length), path, lengths + 4 * s);
    if (const auto offset = number_at<std::uint64_t>(index, offsets + 8 * s); offset != end)
      refuse_tokens(fmt::format("sequence {} begins at byte {} of the .bin file, the one before it "
                                "ends at {}",
                                s, offset, end),
                    path, offsets + 8 * s);
    end += static_cast<std::uint64_t>(length) * width;
  }
  if (end != bytes)
    refuse_tokens(fmt::format("its sequences have {} bytes, the .bin file has {}", end, bytes),
                  path, offsets);
  std::uint64_t last = 0;
  for (std::uint64_t d = 0; d < documents; ++d) {
    const auto at = number_at<std::uint64_t>(index, bounds + 8 * d);
    if (at < last || at > sequences || (d == 0 && at != 0) ||
        (d + 1 == documents && at != sequences))
      refuse_tokens(fmt::format("document {} begins with sequence {} of {}; they ascend from 0 to "
                                "the number of sequences",
                                d, at, sequences),
                    path, bounds + 8 * d);
    last = at;
  }
}

void read_megatron(const std::string& path, std::uint64_t bytes, TokenRun& run) {
  const std::string index = read_file(path, std::uint64_t{16} << 30);
  constexpr std::string_view kMagic("MMIDIDX\0\0", 9);
  if (!index.starts_with(kMagic)) refuse_tokens("it does not begin with MMIDIDX", path, 0);
  if (index.size() < 34) refuse_tokens("the header has 34 bytes", path, index.size());
  if (const auto version = number_at<std::uint64_t>(index, 9); version != 1)
    refuse_tokens(fmt::format("version {} is unknown", version), path, 9);
  const int code = static_cast<unsigned char>(index[17]);
  run.width = megatron_width(code);
  if (run.width == 0)
    refuse_tokens(fmt::format("type {} is not one of whole numbers", code), path, 17);
  run.is_signed = code >= 2 && code <= 5;
  const auto sequences = number_at<std::uint64_t>(index, 18);
  const auto documents = number_at<std::uint64_t>(index, 26);
  const std::uint64_t room = index.size() - 34;
  if (sequences > room / 12 || documents > (room - 12 * sequences) / 8 ||
      12 * sequences + 8 * documents != room)
    refuse_tokens(fmt::format("{} sequences and {} document bounds do not make a file of {} bytes",
                              sequences, documents, index.size()),
                  path, 18, "an index of text (multimodal ones, which have modes, are not read)");
  check_megatron(index, path, sequences, documents, run.width, bytes);
  run.size = bytes / static_cast<std::uint64_t>(run.width);
  run.parted = true;
}

/// Documents are of whole sequences, whose lengths are known to be sound.
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

std::string index_beside(const std::string& path) {
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
    own = megatron_bounds(index_beside(run.path));
  }
  own.push_back(run.size);
  for (const std::uint64_t bound : own)
    if (const std::uint64_t at = run.first + bound; at > bounds.back()) bounds.push_back(at);
}

TokenRun read_token_run(const std::string& path, std::uint64_t bytes) {
  if (is_token_file(path)) return run_of_ours(path);
  TokenRun run;
  run.path = path;
  if (const std::string index = index_beside(path); !index.empty()) {
    read_megatron(index, bytes, run);
  } else if (!read_llmc(path, bytes, run)) {
    require_bare_tokens(path, bytes);
    run.size = bytes / 2;
  }
  return run;
}

}  // namespace concertina
