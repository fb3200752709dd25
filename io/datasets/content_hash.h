// Hashes for detecting equal data items.
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

/// Appends `text` in the form used for comparisons: in lower case, trimmed, and with each run of
/// Unicode white space replaced with one space. Bytes that are not valid UTF-8 are kept.
void append_folded(std::string_view text, std::string& folded);
/// Returns the content_hash() of that form.
std::uint64_t folded_hash(std::string_view text);

}  // namespace concertina
