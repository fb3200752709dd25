// The properties of characters that tokenizers need.
#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace concertina {

/// Whether the character has Unicode's property White_Space.
bool is_white_space(std::uint32_t code);
/// Appends the character in UTF-8.
void append_utf8(std::uint32_t code, std::string& text);
bool is_utf8(std::string_view text);
/// Input error, with the byte, unless `text` is UTF-8.
void require_utf8(std::string_view text);
/// The end of the white space that begins at `at`, and the beginning of that which ends there.
std::size_t white_space_after(std::string_view text, std::size_t at);
std::size_t white_space_before(std::string_view text, std::size_t at);
/// The first place in [from, text.size()] after a line break that stands between two characters
/// that are no white space, the second no '/' (which a pattern joins with what is before), or the
/// end: tokenizers that never join what white space separates, and split before and after a single
/// line break, may be cut there.
std::size_t line_cut(std::string_view text, std::size_t from);
/// The first place in [from, text.size()] before a space that stands alone between two printable
/// characters of ASCII, or the end: the tokenizers of line_cut() that put a space before a text
/// that has none may be cut there.
std::size_t space_cut(std::string_view text, std::size_t from);

}  // namespace concertina
