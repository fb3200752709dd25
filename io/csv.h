// Comma-separated values (RFC 4180). Invariant: parse_csv(csv_line(cells)) returns the cells
// unchanged, whatever text they contain.
#pragma once

#include <optional>
#include <string>
#include <vector>

namespace concertina {

/// Returns one line including its terminator. Cells are quoted where necessary.
std::string csv_line(const std::vector<std::string>& cells);
/// Returns all lines, or nothing if a quote is unclosed or misplaced.
std::optional<std::vector<std::vector<std::string>>> parse_csv(const std::string& text);

}  // namespace concertina
