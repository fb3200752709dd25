// Sizes of memory and files in config keys, such as "512 MiB".
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

/// Parses a number, which may have a fraction, and a unit, with or without a space in between: B,
/// KiB, MiB, GiB, TiB (powers of 1024), or kB, KB, MB, GB, TB (powers of 1000). Truncates to whole
/// bytes. "0" needs no unit. Returns nothing for any other text and for 2^62 bytes or more.
std::optional<ByteSize> parse_byte_size(std::string_view text);

/// Formats a size in the largest unit that gives a whole number: "512 MiB", "1000 B", "0".
/// parse_byte_size() returns the same size.
std::string to_text(ByteSize size);

}  // namespace concertina
