// Character properties for tokenizers.
#pragma once

#include <cstddef>
#include <string_view>

namespace concertina {

bool is_utf8(std::string_view text);
/// Throws Error{bad_input} naming the byte unless `text` is UTF-8.
void require_utf8(std::string_view text);
/// Return the end of the white space starting at `at`, or the start of white space ending there.
std::size_t white_space_after(std::string_view text, std::size_t at);
std::size_t white_space_before(std::string_view text, std::size_t at);
/// Returns the first position in [from, text.size()] after a line break between two characters that
/// are not white space, the second of which is not '/' (which some patterns join with the preceding
/// text), or the end. Text can be split there for tokenizers that never join text across white
/// space and that always split before and after a single line break.
std::size_t line_cut(std::string_view text, std::size_t from);
/// Returns the first position in [from, text.size()] before a single space between two printable
/// ASCII characters, or the end. Text can be split there for tokenizers suitable for line_cut()
/// that add a leading space to text without one.
std::size_t space_cut(std::string_view text, std::size_t from);

}  // namespace concertina
