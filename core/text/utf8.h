// Characters of UTF-8. The text may be invalid.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace concertina {

/// Returns the character at `at` and advances `at` past it. Returns nullopt for invalid UTF-8 (RFC
/// 3629: shortest form, no surrogates), and advances `at` by one byte.
std::optional<std::uint32_t> next_code(std::string_view text, std::size_t& at);
/// Appends the character in UTF-8.
void append_utf8(std::uint32_t code, std::string& text);
/// Whether the character has the Unicode property White_Space.
bool is_white_space(std::uint32_t code);

}  // namespace concertina
