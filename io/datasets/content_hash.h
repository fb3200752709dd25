// Hashes by which items of data are told to be the same.
#pragma once

#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>

namespace concertina {

/// XXH3, 64 bits.
std::uint64_t content_hash(std::span<const std::byte> bytes);
inline std::uint64_t content_hash(std::string_view text) {
  return content_hash(std::as_bytes(std::span(text)));
}

/// Appends `text` as it is compared with others: in lower case, without space at its ends, one
/// space where it has several (as Unicode has these). Bytes that are not UTF-8 stay as they are.
void append_folded(std::string_view text, std::string& folded);
/// The hash of that.
std::uint64_t folded_hash(std::string_view text);

}  // namespace concertina
