// Sizes of memory and files as config keys hold them: "512 MiB".
#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace concertina {

struct ByteSize {
  std::int64_t bytes = 0;
  bool operator==(const ByteSize&) const = default;
};

/// Reads a number, which may have a fraction, and a unit: B, KiB, MiB, GiB, TiB (powers of 1024),
/// or kB, KB, MB, GB, TB (powers of 1000), with or without a space between; fractions of a byte are
/// cut off. "0" needs no unit. Nothing if `text` is anything else, or 2^62 bytes or more.
std::optional<ByteSize> parse_byte_size(std::string_view text);

/// The size in the largest unit of which it is a whole number: "512 MiB", "1000 B", "0". It reads
/// back to the same size.
std::string to_text(ByteSize size);

}  // namespace concertina
