// Tables as text for a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace concertina {

/// Returns the width in characters, not bytes, of UTF-8 text.
std::size_t width_of(const std::string& text);

/// Pads `text` with spaces to `width` characters: on the right if `left`, otherwise on the left.
std::string padded(const std::string& text, std::size_t width, bool left = true);

/// Returns one line per row; the first row may be a header. The first `left` columns are
/// left-aligned, the others right-aligned.
std::string text_table(const std::vector<std::vector<std::string>>& rows, std::size_t left);

}  // namespace concertina
