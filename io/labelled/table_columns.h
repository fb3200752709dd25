// Which columns of a table hold the text and the label.
#pragma once

#include <cstddef>
#include <optional>
#include <span>
#include <string>
#include <vector>

namespace concertina {

/// Columns by their place in a file.
struct TableColumns {
  std::vector<std::size_t> text{};  // one, or two of a pair
  std::optional<std::size_t> label{};
  std::vector<std::string> ignored{};  // names of the others
};

/// The columns that `text` (one or two names) and `label` name; where these are empty, those that
/// GLUE's tasks have as they are published, and usual names. Input errors, at `where`: no such
/// column, two of its name, several that it may be.
/// `needs_label` false: there may be no column for it, or several that it may be, none of which
/// then counts.
TableColumns find_columns(std::span<const std::string> names, const std::vector<std::string>& text,
                          const std::string& label, const std::string& where,
                          bool needs_label = true);

}  // namespace concertina
