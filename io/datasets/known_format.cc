#include "io/datasets/known_format.h"

#include <algorithm>
#include <cstddef>

namespace concertina {
namespace {

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

}  // namespace

std::string_view known_format(std::string_view start) {
  for (const KnownStart& known : kKnownStarts)
    if (start.size() >= known.at && start.substr(known.at).starts_with(known.bytes))
      return known.name;
  return is_text(start) ? "text" : std::string_view{};
}

}  // namespace concertina
