// Comma-separated values as RFC 4180 has them.
// Invariant: parse_csv(csv_line(cells)) gives the cells back, whatever text is in them.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace concertina {

/// One line with its end; cells that need quotes have them.
std::string csv_line(const std::vector<std::string>& cells);
/// All lines; nothing if a quote is not closed, or stands where none may.
std::optional<std::vector<std::vector<std::string>>> parse_csv(const std::string& text);

}  // namespace concertina
