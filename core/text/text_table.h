// Tables as text on a terminal.
#pragma once

#include <cstddef>
#include <string>
#include <vector>

namespace concertina {

/// Characters, not bytes, of UTF-8.
std::size_t width_of(const std::string& text);

/// `text` with blanks up to `width`, after it or, if not `left`, before.
std::string padded(const std::string& text, std::size_t width, bool left = true);

/// A line for each row, of which the first may be a head. The first `left` columns begin at one
/// place each, the others end at one.
std::string text_table(const std::vector<std::vector<std::string>>& rows, std::size_t left);

}  // namespace concertina
